"""Bodies that the server answers: chat and text completions, whole or as stream chunks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from infx.engine.request import Emission, FinishReason, Request
from infx.engine.server.bodies import Call
from infx.engine.server.logprobs import ChatLogprobs, TextLogprobs
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["Answer", "ChatChoice", "TextChoice", "error_body", "sse", "usage", "write_json"]

write_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Answer:
    """The frame of one response. ``synthetic`` marks text that an acceptance law decided."""

    model: str
    chat: bool
    synthetic: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choices: list[dict[str, Any]], requests: Sequence[Request]) -> dict[str, Any]:
        """Return the body of a response that is not streamed."""
        kind = "chat.completion" if self.chat else "text_completion"
        return self._frame(kind, choices) | {"usage": usage(requests)}

    def chunk(self, *choices: dict[str, Any]) -> dict[str, Any]:
        """Return the chunk that holds ``choices``."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._frame(kind, list(choices))

    def closing(self, requests: Sequence[Request]) -> dict[str, Any]:
        """Return the chunk that holds the usage and no choice."""
        return self.chunk() | {"usage": usage(requests)}

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": ("chatcmpl-" if self.chat else "cmpl-") + self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "synthetic_acceptance": self.synthetic,
        }


class ChatChoice:
    """The choice of a chat: what each emission of its request becomes."""

    def __init__(self, index: int, request: Request, call: Call, tokenizer: ChatTokenizer) -> None:
        self._index, self._asked = index, call.params.logprobs
        self._logprobs = ChatLogprobs(tokenizer)

    def opening(self) -> dict[str, Any] | None:
        """Return the choice that names the role, before a stream's first text."""
        return _choice(self._index, {"delta": {"role": "assistant", "content": ""}}, None, None)

    def piece(self, emission: Emission) -> dict[str, Any]:
        """Return the choice of a stream's chunk."""
        return self._of({"delta": {"content": emission.text}}, emission)

    def whole(self, emission: Emission) -> dict[str, Any]:
        """Return the choice of a whole answer, all emissions taken together."""
        return self._of({"message": {"role": "assistant", "content": emission.text}}, emission)

    def _of(self, part: dict[str, Any], emission: Emission) -> dict[str, Any]:
        found = None
        if self._asked is not None:
            found = self._logprobs.output(emission.logprobs, self._asked)
        return _choice(self._index, part, found, emission.finish_reason)


class TextChoice:
    """The choice of a text completion: the prompt before it when the call echoes."""

    def __init__(self, index: int, request: Request, call: Call, tokenizer: ChatTokenizer) -> None:
        self._index, self._request, self._call = index, request, call
        self._tokenizer, self._logprobs = tokenizer, TextLogprobs(tokenizer)

    def opening(self) -> dict[str, Any] | None:
        """Return the choice that echoes the prompt, before a stream's first text."""
        if not self._call.echo:
            return None
        request, found = self._request, None
        if self._asked:
            found = self._logprobs.prompt(request)
        text = self._tokenizer.decode(request.tokens[: request.prompt_tokens], special=True)
        return _choice(self._index, {"text": text}, found, None)

    def piece(self, emission: Emission) -> dict[str, Any]:
        """Return the choice of a stream's chunk."""
        found = self._logprobs.output(emission.logprobs) if self._asked else None
        return _choice(self._index, {"text": emission.text}, found, emission.finish_reason)

    def whole(self, emission: Emission) -> dict[str, Any]:
        """Return the choice of a whole answer, all emissions taken together."""
        before, after = self.opening(), self.piece(emission)
        if before is None:
            return after
        after["text"] = before["text"] + after["text"]
        if self._asked:
            after["logprobs"] = {
                name: before["logprobs"][name] + entries
                for name, entries in after["logprobs"].items()
            }
        return after

    @property
    def _asked(self) -> bool:
        return self._call.params.logprobs is not None


def _choice(
    index: int, part: dict[str, Any], logprobs: dict[str, Any] | None, reason: FinishReason | None
) -> dict[str, Any]:
    return {"index": index, **part, "logprobs": logprobs, "finish_reason": reason}


def usage(requests: Sequence[Request]) -> dict[str, Any]:
    """Return token counts over the requests of one response."""
    prompt = sum(request.prompt_tokens for request in requests)
    generated = sum(request.generated for request in requests)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": sum(r.cached_tokens for r in requests)},
    }


def error_body(status: int, code: str, message: str, param: str | None) -> dict[str, Any]:
    """Return the API's error object for an HTTP status; its code is ours with underscores."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    code = code.replace("-", "_")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def sse(body: dict[str, Any]) -> bytes:
    """Return one server-sent event."""
    return b"data: " + write_json(body) + b"\n\n"
