"""A request inside the engine: what it asks, its tokens, how far it is computed, how it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from infx.engine.detokenizer import TextStream

__all__ = ["Emission", "FinishReason", "Request", "SamplingParams"]

FinishReason = Literal["stop", "length", "abort", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How to choose tokens and when to end. ``top_k`` 0 keeps all; temperature 0 is greedy."""

    max_tokens: int
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Emission:
    """What one step gave one request: ``text`` that may be shown, how many tokens, the end."""

    text: str
    tokens: int
    finish_reason: FinishReason | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """State of one request. ``number`` counts arrivals and keys its random draws.

    ``tokens`` are prompt and output; positions below ``computed`` are in the cache, below
    ``drafted`` in the draft's; ``drafts`` are the guesses for the next step. ``hashes`` are
    those of its full pages, the first ``published`` of them findable by others.
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
    last_token_s: float | None = None
    finish_reason: FinishReason | None = None

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)

    @property
    def generated(self) -> int:
        """Output tokens so far."""
        return len(self.tokens) - self.prompt_tokens

    def accept(self, tokens: Sequence[int]) -> Emission:
        """Append ``tokens`` up to the one that ends the request; return what may be shown."""
        before, text = self.generated, ""
        for token in tokens:
            self.tokens.append(token)
            text += self._show(token)
            self.finish_reason = self._ends(token)
            if self.finish_reason is not None:
                text += self.text.finish()
                break
        return Emission(text, self.generated - before, self.finish_reason)

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
