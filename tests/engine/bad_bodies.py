"""Bodies for fuzzing: valid ones of every endpoint, mutated by a seeded generator."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

CHAT = {
    "model": "tiny",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "2 + 2?"}]},
        {"role": "assistant", "content": None},
        {"role": "tool", "tool_call_id": "t", "content": "4"},
    ],
    "max_completion_tokens": 2,
    "temperature": 0.7,
    "top_p": 0.9,
    "seed": 3,
    "stop": ["\n"],
    "stream": False,
    "logprobs": True,
    "top_logprobs": 2,
    "chat_template_kwargs": {"enable_thinking": False},
}
COMPLETION = {
    "model": "tiny",
    "prompt": [[1, 2, 3], "text"],
    "max_tokens": 2,
    "min_tokens": 1,
    "top_k": 5,
    "ignore_eos": True,
    "echo": True,
    "logprobs": 1,
    "n": 1,
    "stream_options": {"include_usage": True},
    "logit_bias": {},
}
VALID = (
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", CHAT | {"stream": True, "stream_options": {"include_usage": True}}),
    ("/v1/completions", COMPLETION),
    ("/v1/completions", COMPLETION | {"prompt": "a", "stream": True}),
    ("/tokenize", {"prompt": "some text"}),
    ("/tokenize", {"messages": [{"role": "user", "content": "x"}]}),
    ("/detokenize", {"tokens": [97, 98, 256]}),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 255, 261, 2**31, 2**63, -(2**63), 2**64, 10**400),
    *(0.5, -0.0, 1e308, 1e-320, math.nan, math.inf, -math.inf),
    *("", "x", " ", "\0", "\ud800", "\udfff\ud800", "é" * 40, "\U0001f600", "<|im_end|>" * 3),
    *("‮", "1", "true", "null", "x" * 5000, "tiny", "disabled", "enabled"),
    *([], [[]], [None], [1, "a"], [[97], [98]], ["a"] * 70, [{}], [261], [-1], [97] * 600),
    *({}, {"type": "text"}, {"": None}, {"a": [{}]}, {"role": "user"}, {"type": "json_object"}),
)
EXTRA = (
    *("n", "best_of", "suffix", "tools", "tool_choice", "functions", "response_format", "min_p"),
    *("stop_token_ids", "presence_penalty", "prompt_logprobs", "reasoning_effort", "audio", "new"),
    *("max_tokens", "max_completion_tokens", "chat_template_kwargs", "user", "metadata", "echo"),
)
ENCODINGS = ("utf-16", "utf-32", "latin-1", "utf-7", "cp037")


def paths(value: Any, before: tuple = ()) -> list[tuple]:
    """The path of every value inside ``value``."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, one in inside:
        found.append((*before, key))
        if isinstance(one, dict | list):
            found += paths(one, (*before, key))
    return found


def put(body: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value


def nested(rng: random.Random) -> Any:
    depth = rng.choice((3, 50, 900, 30_000))
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
    return (opening * depth + "1" + closing * depth).encode()


def change(body: dict[str, Any], rng: random.Random) -> None:
    """Put wrong values in places of ``body``, new fields beside them, or take fields out."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        found = paths(body)
        roll = rng.random()
        if roll < 0.6 and found:
            put(body, rng.choice(found), rng.choice(VALUES))
        elif roll < 0.9:
            body[rng.choice(EXTRA)] = rng.choice(VALUES)
        elif body:
            del body[rng.choice(list(body))]


def damage(data: bytes, rng: random.Random) -> bytes:
    """Break the bytes of a body: cut, flip, insert, encode otherwise, nest deeply."""
    at = rng.randrange(len(data))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
    if kind == 3:
        return data.decode(errors="replace").encode(rng.choice(ENCODINGS), errors="replace")
    if kind == 4:
        return data[:-1] + b', "new": ' + nested(rng) + b"}"
    return data.replace(b"2", b"2" * rng.choice((30, 400, 5000)), 1)


def bad_bodies(seed: int, count: int) -> list[tuple[str, bytes, dict[str, str]]]:
    """(path, body, headers) of ``count`` requests, most of them wrong somewhere."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        path, valid = rng.choice(VALID)
        body = copy.deepcopy(valid)
        headers = {"Content-Type": rng.choice(("application/json", "text/plain", "a/b; charset=x"))}
        change(body, rng)
        data = json.dumps(body).encode()
        if rng.random() < 0.25:
            data = damage(data, rng)
        if rng.random() < 0.05:
            headers["Content-Encoding"] = rng.choice(("gzip", "deflate", "br", "identity", "x"))
        made.append((path, data, headers))
    return made
