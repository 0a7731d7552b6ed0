"""Bodies that the server answers: chat and text completions, whole or as stream chunks."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from infx.engine.request import Request

__all__ = ["Answer", "error_body", "sse", "usage"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The shapes of one response. ``synthetic`` marks text that an acceptance law decided."""

    model: str
    chat: bool
    synthetic: bool
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(
        self, texts: Sequence[str], reasons: Sequence[str | None], requests: Sequence[Request]
    ) -> dict[str, Any]:
        """Return the body of a response that is not streamed."""
        choices = [
            self._choice(index, self._message(text), reason)
            for index, (text, reason) in enumerate(zip(texts, reasons, strict=True))
        ]
        kind = "chat.completion" if self.chat else "text_completion"
        return self._frame(kind, choices) | {"usage": usage(requests)}

    def opening(self, index: int) -> dict[str, Any] | None:
        """Return the chunk that names the role, before a chat's first text."""
        if not self.chat:
            return None
        return self._chunk([self._choice(index, {"delta": {"role": "assistant", "content": ""}})])

    def piece(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        """Return the chunk of one emission."""
        part = {"delta": {"content": text}} if self.chat else {"text": text}
        return self._chunk([self._choice(index, part, reason)])

    def closing(self, requests: Sequence[Request]) -> dict[str, Any]:
        """Return the chunk that holds the usage and no choice."""
        return self._chunk([]) | {"usage": usage(requests)}

    def _message(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}

    def _choice(
        self, index: int, part: dict[str, Any], reason: str | None = None
    ) -> dict[str, Any]:
        return {"index": index, **part, "logprobs": None, "finish_reason": reason}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return self._frame("chat.completion.chunk" if self.chat else "text_completion", choices)

    def _frame(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": ("chatcmpl-" if self.chat else "cmpl-") + self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "synthetic_acceptance": self.synthetic,
        }


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
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"
