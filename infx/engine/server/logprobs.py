"""Log-probabilities as the API's two endpoints write them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

from infx.engine.request import Request, TokenLogprob
from infx.engine.tokenizer import ChatTokenizer

__all__ = ["LEAST", "ChatLogprobs", "TextLogprobs"]

# JSON has no -inf: a token that cannot come gets this, as other servers write it.
LEAST = -9999.0


class TextLogprobs:
    """The ``logprobs`` objects of one choice of /v1/completions, part after part.

    Each holds ``tokens``, ``token_logprobs``, ``top_logprobs`` and ``text_offset``, one entry a
    token. The chosen token stands in its dict of alternatives with the same float.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._names = tokenizer.names
        self._prompt_bytes, self._output_bytes = tokenizer.shown_bytes, tokenizer.token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._at = 0

    def prompt(self, request: Request) -> dict[str, Any]:
        """Return the object of the prompt, whose first token has no probability."""
        ids = request.tokens[: request.prompt_tokens]
        return self._body(ids, request.prompt_logprobs, self._prompt_bytes)

    def output(self, found: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return the object of an emission."""
        return self._body([one.token for one in found], found, self._output_bytes)

    def _body(
        self, ids: Sequence[int], found: Sequence[TokenLogprob | None], shown: Sequence[bytes]
    ) -> dict[str, Any]:
        return {
            "tokens": [self._names[token] for token in ids],
            "token_logprobs": [None if one is None else _finite(one.logprob) for one in found],
            "top_logprobs": [None if one is None else self._top(one) for one in found],
            "text_offset": self._offsets(ids, shown),
        }

    def _top(self, one: TokenLogprob) -> dict[str, float]:
        return {self._names[token]: _finite(logprob) for token, logprob in one.top}

    def _offsets(self, ids: Sequence[int], shown: Sequence[bytes]) -> list[int]:
        """Return the character at which each token begins, or the one that it is a part of."""
        offsets = []
        for token in ids:
            offsets.append(self._at)
            self._at += len(self._decoder.decode(shown[token]))
        return offsets


class ChatLogprobs:
    """The ``logprobs`` objects of /v1/chat/completions."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._names, self._bytes = tokenizer.names, tokenizer.token_bytes

    def output(self, found: Sequence[TokenLogprob], count: int) -> dict[str, Any]:
        """Return the object of an emission with ``count`` alternatives a token."""
        return {"content": [self._token(one, count) for one in found], "refusal": None}

    def _token(self, one: TokenLogprob, count: int) -> dict[str, Any]:
        top = [self._entry(token, logprob) for token, logprob in one.top[:count]]
        return self._entry(one.token, one.logprob) | {"top_logprobs": top}

    def _entry(self, token: int, logprob: float) -> dict[str, Any]:
        stands_for = list(self._bytes[token]) or None
        return {"token": self._names[token], "logprob": _finite(logprob), "bytes": stands_for}


def _finite(logprob: float) -> float:
    return max(logprob, LEAST)
