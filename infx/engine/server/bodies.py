"""Request bodies of the OpenAI API: read, checked, refused with the field's name.

Unknown fields are ignored, as clients send many. Known ones that this engine does not serve are
refused unless their value asks for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from infx.engine.request import SamplingParams
from infx.engine.server.fields import (
    MOST_NUMBER,
    BodyError,
    bad,
    flag,
    number,
    refuse_thinking,
    refuse_unserved,
)
from infx.engine.server.prompts import read_messages, read_prompts, read_text, read_token_ids
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["Call", "read_chat", "read_completion", "read_json", "read_tokenize", "read_tokens"]

Body = Mapping[str, Any]

COMPLETION_TOKENS = 16  # the API's default for /v1/completions
MOST_STOPS = 64  # each is searched for at every token
MOST_ALTERNATIVES = 20  # the API's limit on top_logprobs
# Making a million values holds the interpreter, and every stream, for 40 ms.
MOST_VALUES = 500_000
ODD_JSON_BYTES = 1 << 20  # the slow reader takes 30 ms for these


@dataclass(frozen=True, slots=True)
class Call:
    """A checked body: one prompt a choice, how to sample, how to answer.

    ``echo`` puts the prompt before the output; the params say whether with its log-probabilities.
    """

    prompts: Sequence[list[int]]
    params: SamplingParams
    stream: bool
    include_usage: bool
    echo: bool = False


def read_json(data: bytes) -> dict[str, Any]:
    """Return the object that a body is. Raises BodyError (field ``body``)."""
    if data.count(b",") > MOST_VALUES:
        message = f"the body holds more than {MOST_VALUES} values; send fewer prompts at once"
        raise BodyError("bad-request", message, "body")
    try:
        body = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        if len(data) > ODD_JSON_BYTES:
            raise _no_json(error) from error
        body = _read_odd_json(data)
    if not isinstance(body, dict):
        raise BodyError("bad-request", "the body is not a JSON object", "body")
    return body


def read_chat(body: Body, tokenizer: ChatTokenizer, context: int) -> Call:
    """Return the call of a /v1/chat/completions body. Raises BodyError."""
    refuse_thinking(body)
    prompt = read_messages(body, tokenizer, context)
    newer = body.get("max_completion_tokens") is not None
    field = "max_completion_tokens" if newer else "max_tokens"
    limit = _limit(body, field, "messages", context, len(prompt), default=context, least=1)
    return _call(body, [prompt], _params(body, limit, logprobs=_chat_logprobs(body)))


def read_completion(body: Body, tokenizer: ChatTokenizer, context: int) -> Call:
    """Return the call of a /v1/completions body; one choice a prompt. Raises BodyError."""
    prompts = read_prompts(body.get("prompt"), tokenizer, context)
    echo, logprobs = flag(body, "echo"), _completion_logprobs(body)
    longest, least = max(map(len, prompts)), 0 if echo else 1
    limit = _limit(body, "max_tokens", "prompt", context, longest, COMPLETION_TOKENS, least)
    params = _params(body, limit, logprobs, prompt_logprobs=logprobs if echo else None)
    return _call(body, prompts, params, echo=echo)


def read_tokenize(body: Body, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return the ids of a /tokenize body: a ``prompt``, or else ``messages``. Raises BodyError."""
    text = body.get("prompt")
    if text is None:
        return read_messages(body, tokenizer, context)
    if not isinstance(text, str):
        raise bad("prompt", text, "a string")
    return read_text(text, "prompt", tokenizer, context)


def read_tokens(body: Body, tokenizer: ChatTokenizer, context: int) -> list[int]:
    """Return the ids of a /detokenize body. Raises BodyError."""
    return read_token_ids(body.get("tokens"), "tokens", tokenizer, context)


def _read_odd_json(data: bytes) -> Any:
    """Read what the fast reader does not take: NaN, Infinity, halves of characters, huge numbers.

    They are then refused by the field that holds them.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        # A ValueError is no JSON, no UTF-8, or a number of more digits than Python reads.
        raise _no_json(error) from error


def _no_json(error: Exception) -> BodyError:
    return BodyError("bad-request", f"the body is not JSON: {error}"[:300], "body")


def _limit(
    body: Body, field: str, asked: str, context: int, prompt: int, default: int, least: int
) -> int:
    """Return how many tokens to generate: as asked, or ``default``, and never over the context."""
    room = context - prompt
    limit: int = number(body, field, int, least, max(min(room, default), least))
    if limit > room:
        message = (
            f"the prompt's {prompt} tokens and {field} {limit} are over the context of"
            f" {context} tokens; shorten the prompt or ask for fewer tokens"
        )
        raise BodyError("context-length-exceeded", message, field if room > 0 else asked)
    return limit


def _call(body: Body, prompts: Sequence[list[int]], params: SamplingParams, **more: bool) -> Call:
    refuse_unserved(body)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise bad("stream_options", options, "an object")
    include_usage = flag(options, "include_usage", "stream_options.")
    return Call(prompts, params, flag(body, "stream"), include_usage, **more)


def _params(
    body: Body, limit: int, logprobs: int | None, prompt_logprobs: int | None = None
) -> SamplingParams:
    return SamplingParams(
        max_tokens=limit,
        min_tokens=number(body, "min_tokens", int, 0, 0, limit),
        temperature=number(body, "temperature", float, 0, 1.0),
        top_p=number(body, "top_p", float, 0, 1.0, 1.0),
        top_k=max(number(body, "top_k", int, -1, 0), 0),
        seed=number(body, "seed", int, -MOST_NUMBER, None),
        ignore_eos=flag(body, "ignore_eos"),
        stop=_stop(body.get("stop")),
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs,
    )


def _chat_logprobs(body: Body) -> int | None:
    count: int = number(body, "top_logprobs", int, 0, 0, MOST_ALTERNATIVES)
    if flag(body, "logprobs"):
        return count
    if count:
        raise bad("top_logprobs", count, "logprobs: true beside it")
    return None


def _completion_logprobs(body: Body) -> int | None:
    if body.get("logprobs") is False:
        return None
    count: int | None = number(body, "logprobs", int, 0, None, MOST_ALTERNATIVES)
    return count


def _stop(stop: Any) -> tuple[str, ...]:
    texts = [stop] if isinstance(stop, str) else stop or []
    whole = isinstance(texts, list) and all(isinstance(text, str) and text for text in texts)
    if not whole or len(texts) > MOST_STOPS:
        raise bad("stop", stop, f"a string or a list of at most {MOST_STOPS}, none empty")
    return tuple(texts)
