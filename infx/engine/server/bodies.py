"""Request bodies of the OpenAI API: read, checked, refused with the field's name.

Unknown fields are ignored, as clients send many. Known ones that this engine does not serve are
refused unless their value asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.engine.request import SamplingParams
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["BodyError", "Call", "read_chat", "read_completion", "read_text", "read_tokens"]

Body = Mapping[str, Any]

COMPLETION_TOKENS = 16  # the API's default for /v1/completions
MOST_PROMPTS = 2048  # the API's limit on prompts in one body
MOST_STOPS = 64  # each is searched for at every token
MOST_NUMBER = 2**63 - 1  # whole numbers of the API have 64 bits

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
    "stop_token_ids": ([],),
    "bad_words": ([],),
    "allowed_token_ids": ([],),
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
    prompt = _encode(_chat_text(body, tokenizer), "messages", tokenizer, context)
    newer = body.get("max_completion_tokens") is not None
    limit = "max_completion_tokens" if newer else "max_tokens"
    return _call(body, "messages", [prompt], limit, context)


def read_completion(body: Body, tokenizer: ChatTokenizer, context: int) -> Call:
    """Return the call of a /v1/completions body; one choice a prompt. Raises BodyError."""
    prompts = _prompts(body.get("prompt"), tokenizer, context)
    return _call(body, "prompt", prompts, "max_tokens", context)


def read_text(body: Body, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return the ids of a /tokenize body: a ``prompt``, or else ``messages``. Raises BodyError."""
    text = body.get("prompt")
    if text is None:
        return _encode(_chat_text(body, tokenizer), "messages", tokenizer, context)
    if not isinstance(text, str):
        raise _bad("prompt", text, "a string")
    return _encode(text, "prompt", tokenizer, context)


def read_tokens(body: Body, tokenizer: ChatTokenizer) -> list[int]:
    """Return the ids of a /detokenize body. Raises BodyError."""
    return _token_ids(body.get("tokens"), "tokens", tokenizer)


def _chat_text(body: Body, tokenizer: ChatTokenizer) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", messages, "a list of at least one message")
    read = [_message(message, f"messages[{at}]") for at, message in enumerate(messages)]
    return tokenizer.render(read, add_generation_prompt=True)


def _encode(text: str, where: str, tokenizer: ChatTokenizer, context: int) -> list[int]:
    if len(text) > tokenizer.longest * context:
        # Ten million characters would hold the server for twenty seconds.
        message = f"{where}: {len(text)} characters are over the context of {context} tokens"
        raise BodyError("context-length-exceeded", f"{message}; shorten it", where)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _bad(where, text[error.start : error.end], "text, not half a character") from error
    return tokenizer.encode(text)


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
        raise BodyError(
            "unsupported-field", f"{where}.type {_shown(part['type'])}: only text", where
        )
    if not isinstance(part.get("text"), str):
        raise _bad(f"{where}.text", part.get("text"), "a string")
    return str(part["text"])


def _prompts(prompt: Any, tokenizer: ChatTokenizer, context: int) -> list[list[int]]:
    """Return one list of ids a prompt; an empty prompt becomes the token that begins a text."""
    single = not isinstance(prompt, list) or not prompt or isinstance(prompt[0], int)
    named = {"prompt": prompt} if single else {f"prompt[{i}]": one for i, one in enumerate(prompt)}
    if len(named) > MOST_PROMPTS:
        raise _bad("prompt", prompt, f"at most {MOST_PROMPTS} prompts")
    return [
        (
            _encode(one, where, tokenizer, context)
            if isinstance(one, str)
            else _token_ids(one, where, tokenizer)
        )
        or [tokenizer.bos]
        for where, one in named.items()
    ]


def _token_ids(ids: Any, where: str, tokenizer: ChatTokenizer) -> list[int]:
    if not isinstance(ids, list):
        raise _bad(where, ids, "a string or a list of token ids")
    for at, token in enumerate(ids):
        if type(token) is not int or not 0 <= token < tokenizer.size:
            raise _bad(f"{where}[{at}]", token, f"a token id from 0 to {tokenizer.size - 1}")
    return ids


def _call(body: Body, asked: str, prompts: Sequence[list[int]], field: str, context: int) -> Call:
    _refuse_unserved(body)
    longest = max(len(prompt) for prompt in prompts)
    room = context - longest
    default = room if asked == "messages" else min(room, COMPLETION_TOKENS)
    limit = _number(body, field, int, 1, max(default, 1))
    if limit > room:
        message = (
            f"the context is {context} tokens: prompt {longest} + {field} {limit} is over it; "
            "shorten the prompt or ask for fewer tokens"
        )
        raise BodyError("context-length-exceeded", message, field if room > 0 else asked)
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
        seed=_number(body, "seed", int, -MOST_NUMBER, None),
        ignore_eos=_flag(body, "ignore_eos"),
        stop=_stop(body.get("stop")),
    )


def _stop(stop: Any) -> tuple[str, ...]:
    texts = [stop] if isinstance(stop, str) else stop or []
    whole = isinstance(texts, list) and all(isinstance(text, str) and text for text in texts)
    if not whole or len(texts) > MOST_STOPS:
        raise _bad("stop", stop, f"a string or a list of at most {MOST_STOPS}, none empty")
    return tuple(texts)


def _number(
    body: Body,
    field: str,
    kind: Callable[[Any], Any],
    least: float,
    default: float | None,
    most: float = MOST_NUMBER,
) -> Any:
    value = body.get(field)
    if value is None:
        return default
    right = type(value) is int or (kind is float and type(value) is float)
    if not right or not least <= value <= most:
        name = "a whole number" if kind is int else "a number"
        raise _bad(field, value, f"{name} from {least} to {most}")
    return value


def _flag(body: Body, field: str, prefix: str = "") -> bool:
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise _bad(prefix + field, value, "true or false")
    return bool(value)


def _refuse_unserved(body: Body) -> None:
    for field, neutral in UNSERVED.items():
        value = body.get(field)
        if value is not None and not any(_same(value, one) for one in neutral):
            message = f"{field} {_shown(value)} is not served by this engine; leave it out"
            raise BodyError("unsupported-field", message, field)


def _same(value: Any, neutral: Any) -> bool:
    """Return equality in which true is not 1: ``logprobs: 0`` asks for logprobs, false does not."""
    return isinstance(value, bool) == isinstance(neutral, bool) and bool(value == neutral)


def _bad(field: str, value: Any, expected: str) -> BodyError:
    return BodyError("bad-request", f"{field} is {_shown(value)}; expected {expected}", field)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
