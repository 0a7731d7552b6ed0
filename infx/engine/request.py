"""A request inside the engine: what it asks, its tokens, how far it is computed, how it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from infx.engine.detokenizer import TextStream

__all__ = ["Emission", "FinishReason", "Request", "SamplingParams", "TokenLogprob"]

FinishReason = Literal["stop", "length", "abort", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to choose tokens and when to end. ``top_k`` 0 keeps all; temperature 0 is greedy.

    ``logprobs`` and ``prompt_logprobs`` are the likeliest alternatives to report for each output
    and each prompt token (None: no report). ``max_tokens`` 0 ends the request after its prompt.
    """

    max_tokens: int
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    prompt_logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token's log-probability in the model's own distribution: temperature and bans left out.

    ``top`` are the likeliest (token, log-probability) first, and the token itself at the end when
    it is not among them.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Emission:
    """What one step gave one request: ``text`` that may be shown, how many tokens, the end.

    ``ids`` are those tokens, ``logprobs`` one for each when asked for, ``sampled_s`` the
    time.monotonic() at which the sampler returned them.
    """

    text: str
    tokens: int
    finish_reason: FinishReason | None = None
    ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    sampled_s: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """State of one request. ``number`` counts arrivals and keys its random draws.

    ``tokens`` are prompt and output; positions below ``computed`` are in the cache, below
    ``drafted`` in the draft's; ``drafts`` are the guesses for the next step. ``hashes`` are
    those of its full pages, the first ``published`` of them findable by others.
    ``prompt_logprobs`` (None for the first token, which nothing predicts) are whole before the
    first emission when the params ask for them, empty otherwise.
    """

    number: int
    tokens: list[int]
    params: SamplingParams
    text: TextStream
    eos: frozenset[int]
    deliver: Callable[[Emission], None]
    arrived_s: float = 0.0
    prompt_tokens: int = field(init=False)
    computed: int = 0
    drafted: int = 0
    drafts: list[int] = field(default_factory=list)
    decoding: bool = False
    aborted: bool = False
    preempted: bool = False
    cached_tokens: int = 0
    pages: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    published: int = 0
    prompt_logprobs: list[TokenLogprob | None] = field(default_factory=list)
    last_token_s: float | None = None
    finish_reason: FinishReason | None = None

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)
        if self.params.prompt_logprobs is not None:
            self.prompt_logprobs.append(None)

    @property
    def generated(self) -> int:
        """Output tokens so far."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def unknown_logprobs(self) -> int:
        """Prompt tokens whose log-probability is asked for and not yet known."""
        asked = self.params.prompt_logprobs is not None
        return self.prompt_tokens - len(self.prompt_logprobs) if asked else 0

    def accept(
        self,
        tokens: Sequence[int],
        logprobs: Sequence[TokenLogprob] = (),
        sampled_s: float = 0.0,
    ) -> Emission:
        """Append ``tokens`` up to the one that ends the request; return what may be shown."""
        before, text = len(self.tokens), ""
        for token in tokens:
            text += self._append(token)
            if self.finish_reason is not None:
                text += self.text.finish()
                break
        ids = tuple(self.tokens[before:])
        return Emission(
            text, len(ids), self.finish_reason, ids, tuple(logprobs[: len(ids)]), sampled_s
        )

    def _append(self, token: int) -> str:
        if self.params.max_tokens == 0:
            self.finish_reason = "length"
            return ""
        self.tokens.append(token)
        text = self._show(token)
        self.finish_reason = self._ends(token)
        return text

    def _show(self, token: int) -> str:
        if token in self.eos and not self.params.ignore_eos:
            return ""
        return self.text.push(token, may_stop=self.generated >= self.params.min_tokens)

    def _ends(self, token: int) -> FinishReason | None:
        params = self.params
        if self.text.stopped:
            return "stop"
        if token in self.eos and not params.ignore_eos and self.generated >= params.min_tokens:
            return "stop"
        return "length" if self.generated >= params.max_tokens else None
