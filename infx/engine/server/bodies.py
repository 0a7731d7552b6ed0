"""Request bodies of the OpenAI API: read, checked, refused with the field's name.

Unknown fields are ignored, as clients send many. Known ones that this engine does not serve are
refused unless their value asks for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.engine.request import SamplingParams
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["BodyError", "Call", "read_chat", "read_completion", "read_messages"]

Body = Mapping[str, Any]

COMPLETION_TOKENS = 16  # the API's default for /v1/completions

# Known fields that are not served, with the values that ask for nothing.
UNSERVED: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "prompt_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "use_beam_search": (False,),
    "audio": (),
}


class BodyError(Exception):
    """A body that is refused: ``code`` of the engine family, ``field`` by its path."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.field = code, message, field


@dataclass(frozen=True, slots=True)
class Call:
    """A checked body: one prompt a choice, how to sample, how to answer."""

    prompts: Sequence[list[int]]
    params: SamplingParams
    stream: bool
    include_usage: bool


def read_chat(body: Body, tokenizer: ChatTokenizer, context: int) -> Call:
    """Return the call of a /v1/chat/completions body. Raises BodyError."""
    text = tokenizer.render(read_messages(body), add_generation_prompt=True)
    field = "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"
    return _call(body, [tokenizer.encode(text)], field, None, context)


def read_completion(body: Body, tokenizer: ChatTokenizer, context: int) -> Call:
    """Return the call of a /v1/completions body; one choice a prompt. Raises BodyError."""
    prompts = _prompts(body.get("prompt"), tokenizer)
    return _call(body, prompts, "max_tokens", COMPLETION_TOKENS, context)


def read_messages(body: Body) -> list[dict[str, str]]:
    """Return ``messages`` as role and text; parts of a content are joined. Raises BodyError."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", messages, "a list of at least one message")
    return [_message(message, f"messages[{at}]") for at, message in enumerate(messages)]


def _message(message: Any, where: str) -> dict[str, str]:
    if not isinstance(message, dict):
        raise _bad(where, message, "an object with role and content")
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise _bad(f"{where}.role", role, "a string")
    return {"role": role, "content": _content(message.get("content"), f"{where}.content")}


def _content(content: Any, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _bad(where, content, "a string or a list of parts")
    return "".join(_part(part, f"{where}[{at}]") for at, part in enumerate(content))


def _part(part: Any, where: str) -> str:
    if not isinstance(part, dict):
        raise _bad(where, part, "an object with type and text")
    if part.get("type", "text") != "text":
        raise BodyError("unsupported-field", f"{where}.type {part['type']!r}: only text", where)
    if not isinstance(part.get("text"), str):
        raise _bad(f"{where}.text", part.get("text"), "a string")
    return str(part["text"])


def _prompts(prompt: Any, tokenizer: ChatTokenizer) -> list[list[int]]:
    if isinstance(prompt, str):
        return [tokenizer.encode(prompt) or [tokenizer.bos]]
    if not isinstance(prompt, list):
        raise _bad("prompt", prompt, "a string, a list of token ids, or a list of these")
    if not prompt or isinstance(prompt[0], int):
        return [_token_ids(prompt, "prompt", tokenizer)]
    return [
        _prompts(one, tokenizer)[0]
        if isinstance(one, str)
        else _token_ids(one, f"prompt[{at}]", tokenizer)
        for at, one in enumerate(prompt)
    ]


def _token_ids(ids: Any, where: str, tokenizer: ChatTokenizer) -> list[int]:
    if not isinstance(ids, list):
        raise _bad(where, ids, "a string or a list of token ids")
    for at, token in enumerate(ids):
        if type(token) is not int or not 0 <= token < tokenizer.size:
            raise _bad(f"{where}[{at}]", token, f"a token id from 0 to {tokenizer.size - 1}")
    return ids or [tokenizer.bos]


def _call(
    body: Body, prompts: Sequence[list[int]], field: str, default: int | None, context: int
) -> Call:
    _refuse_unserved(body)
    longest = max(len(prompt) for prompt in prompts)
    room = context - longest
    limit = _number(body, field, int, 1, default if default is not None else max(room, 1))
    if limit > room:
        message = (
            f"the context is {context} tokens: prompt {longest} + {field} {limit} is over it; "
            "shorten the prompt or ask for fewer tokens"
        )
        raise BodyError("context-length-exceeded", message, field if room > 0 else None)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _bad("stream_options", options, "an object")
    return Call(
        prompts=prompts,
        params=_params(body, limit),
        stream=_flag(body, "stream"),
        include_usage=_flag(options, "include_usage", "stream_options."),
    )


def _params(body: Body, limit: int) -> SamplingParams:
    return SamplingParams(
        max_tokens=limit,
        min_tokens=_number(body, "min_tokens", int, 0, 0, limit),
        temperature=_number(body, "temperature", float, 0, 1.0),
        top_p=_number(body, "top_p", float, 0, 1.0, 1.0),
        top_k=max(_number(body, "top_k", int, -1, 0), 0),
        seed=None if body.get("seed") is None else _number(body, "seed", int, -math.inf, 0),
        ignore_eos=_flag(body, "ignore_eos"),
        stop=_stop(body.get("stop")),
    )


def _stop(stop: Any) -> tuple[str, ...]:
    texts = [stop] if isinstance(stop, str) else stop or []
    whole = isinstance(texts, list) and all(isinstance(text, str) and text for text in texts)
    if not whole:
        raise _bad("stop", stop, "a string or a list of strings, none empty")
    return tuple(texts)


def _number(
    body: Body,
    field: str,
    kind: Callable[[Any], Any],
    least: float,
    default: float,
    most: float = math.inf,
) -> Any:
    value = body.get(field)
    if value is None:
        return default
    right = type(value) is int or (kind is float and type(value) is float)
    if not right or not least <= value <= most:
        name = "a whole number" if kind is int else "a number"
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise _bad(field, value, name if least == -math.inf else f"{name} {bounds}")
    if not math.isfinite(value):
        raise _bad(field, value, "a finite number")
    return value


def _flag(body: Body, field: str, prefix: str = "") -> bool:
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise _bad(prefix + field, value, "true or false")
    return bool(value)


def _refuse_unserved(body: Body) -> None:
    for field, neutral in UNSERVED.items():
        value = body.get(field)
        if value is not None and value not in neutral:
            message = f"{field} {value!r} is not served by this engine; leave it out"
            raise BodyError("unsupported-field", message[:300], field)


def _bad(field: str, value: Any, expected: str) -> BodyError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return BodyError("bad-request", f"{field} is {shown}; expected {expected}", field)
