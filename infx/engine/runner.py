"""Computes a step: target over all rows, tokens chosen and verified, drafts for the next step."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from infx.domain.acceptance import uniform
from infx.domain.errors import EngineError
from infx.engine.batch import Batch, Span, make_batch
from infx.engine.config import EngineConfig
from infx.engine.mono.coverage import Coverage
from infx.engine.mono.refusal import Refusal
from infx.engine.ranks.target import load_target
from infx.engine.request import TokenLogprob
from infx.engine.sampling import Draw, logprobs, sample
from infx.engine.scheduler import Result, Step, Work
from infx.engine.spec.drafter import Drafter, NoDrafter
from infx.engine.spec.dspark import DsparkDrafter
from infx.engine.spec.eagle import EagleDraft, EagleDrafter
from infx.engine.spec.verify import verdict_of
from infx.engine.weights import draft_weights

__all__ = ["Runner", "padded_width"]


def padded_width(rows: int, capture_sizes: Sequence[int]) -> int:
    """Return the rows that a decode step of ``rows`` runs: the next capture size, or ``rows``."""
    return next((size for size in capture_sizes if size >= rows), rows)


class Runner:
    """The target, its drafter and the cache. ``vocabulary`` is the number of ids with a meaning.

    ``coverage`` counts what mono served, where it is asked for.
    """

    def __init__(self, config: EngineConfig, vocabulary: int) -> None:
        shape = config.shape
        self._config, self._vocabulary, self._block = config, vocabulary, shape.block_size
        self._target = load_target(config)
        self._cache = self._target.cache
        self._drafter = _drafter(config, self._target.embed, vocabulary)
        self._verdict = verdict_of(config.acceptance, config.acceptance_seed)
        self.coverage = Coverage()

    @property
    def layers(self) -> str:
        """What computes the target's layers, as `infx.engine.config.LAYERS` names it."""
        return self._target.layers

    @property
    def refusal(self) -> Refusal | None:
        """Why mono did not serve the last step, or serves none; None: it did, or is off."""
        return self._target.refusal

    @property
    def pids(self) -> list[int]:
        """Processes of the target's ranks, this one first."""
        return self._target.pids

    def check(self) -> None:
        """Raise EngineError (``rank-died``) when a rank has ended."""
        self._target.check()

    def close(self) -> None:
        """End the other ranks."""
        self._target.close()

    @torch.inference_mode()
    def run(self, step: Step) -> Result:
        """Return what ``step`` emits and the next drafts, in the order of ``step.work``.

        Raises EngineError: ``not-finite`` logits, ``rank-died``.
        """
        spans = [Span(work.tokens, work.start, work.request.pages) for work in step.work]
        batch = make_batch(spans, self._block, self.width(step))
        stream, aux = self._target.forward(batch, prefill=bool(step.prefills))
        if self._config.mono == "on":
            self.coverage.count(batch.rows, bool(step.prefills), self._target.refusal)
        logits = self._logits(step, batch, stream)
        emitted = self._emit(step, logits)
        sampled_s = time.monotonic()
        self._drafter.observe(aux, batch, self._cache)
        return Result(
            emitted=emitted,
            drafts=self._drafter.propose(step, emitted, self._cache),
            logprobs=_logprobs(step, emitted, logits),
            prompt_logprobs=self._prompt_logprobs(step, batch, stream),
            sampled_s=sampled_s,
        )

    def width(self, step: Step) -> int:
        """Return the rows that ``step`` runs: decode steps are padded to a capture size."""
        rows = sum(len(work.tokens) for work in step.work)
        return rows if step.prefills else padded_width(rows, self._config.capture_sizes)

    def _logits(self, step: Step, batch: Batch, stream: Tensor) -> list[Tensor]:
        """Return logits [rows that choose, ids] of each work."""
        counts = [_choosing(step, number) for number in range(len(step.work))]
        rows: list[int] = []
        for number, work in enumerate(step.work):
            end = batch.firsts[number] + len(work.tokens)
            rows += range(end - counts[number], end)
        # A decode step's head runs at the padded width, like the layers below it.
        wide = stream[rows] if step.prefills else stream
        logits = _finite(self._target.head(wide)[: len(rows), : self._vocabulary])
        return list(torch.split(logits, counts))

    def _emit(self, step: Step, logits: Sequence[Tensor]) -> list[list[int]]:
        """Return the emitted tokens of each work; none where a prompt is not yet at its end."""
        draws = [
            self._draw(work, index)
            for work, rows in zip(step.work, logits, strict=True)
            for index in range(len(rows))
        ]
        if not draws:
            return [[] for _ in step.work]
        chosen = iter(sample(torch.cat(list(logits)), draws))
        return [
            self._judge(step, number, [next(chosen) for _ in range(len(rows))])
            for number, rows in enumerate(logits)
        ]

    def _judge(self, step: Step, number: int, targets: list[int]) -> list[int]:
        work = step.work[number]
        if number >= len(step.decodes) or len(work.tokens) == 1:
            return targets
        request = work.request
        return self._verdict(work.tokens[1:], targets, request.number, request.generated)

    def _draw(self, work: Work, index: int) -> Draw:
        """Return the draw of the request's output token ``generated + index``."""
        request, params = work.request, work.request.params
        at = request.generated + index
        point = 0.0
        if params.temperature > 0:
            own = params.seed is not None
            point = uniform(params.seed or 0, 0 if own else request.number + 1, at)
        banned = request.eos if at + 1 < params.min_tokens else frozenset[int]()
        return Draw(params.temperature, params.top_p, params.top_k, point, banned)

    def _prompt_logprobs(
        self, step: Step, batch: Batch, stream: Tensor
    ) -> dict[int, list[TokenLogprob]]:
        """Return what this step's chunks tell of prompt tokens: a row speaks of the token after."""
        found = {}
        for number, work in enumerate(step.work):
            request, count = work.request, work.request.params.prompt_logprobs
            if count is None or not request.unknown_logprobs:
                continue
            first = len(request.prompt_logprobs)
            last = min(work.start + len(work.tokens), request.prompt_tokens - 1)
            offset = batch.firsts[number] - work.start
            logits = _finite(self._target.head(stream[offset + first - 1 : offset + last]))
            tokens = request.tokens[first : last + 1]
            found[number] = logprobs(logits[:, : self._vocabulary], tokens, count)
        return found


def _drafter(config: EngineConfig, embed: Tensor, vocabulary: int) -> Drafter:
    if config.method == "none":
        return NoDrafter()
    shape = config.shape
    weights = draft_weights(shape, config.method, config.weights)
    if config.method == "dspark":
        return DsparkDrafter(shape, weights, embed, vocabulary, config.k)
    return EagleDrafter(EagleDraft(shape, weights, embed), vocabulary, config.k)


def _finite(logits: Tensor) -> Tensor:
    """Return ``logits``. Raises EngineError (``not-finite``): no token would mean anything."""
    if not logits.isfinite().all():
        raise EngineError(
            "not-finite",
            f"logits of {logits.shape[0]} rows hold NaN or infinity: expected finite numbers; the"
            " checkpoint overflows float32, serve another",
        )
    return logits


def _choosing(step: Step, number: int) -> int:
    """Return how many rows of a work choose a token: all in decode, at most one in prefill."""
    work = step.work[number]
    return len(work.tokens) if number < len(step.decodes) else int(work.last)


def _logprobs(
    step: Step, emitted: Sequence[list[int]], logits: Sequence[Tensor]
) -> dict[int, list[TokenLogprob]]:
    """Return the log-probabilities of the emitted tokens of the works that ask for them."""
    found = {}
    for number, work in enumerate(step.work):
        count, tokens = work.request.params.logprobs, emitted[number]
        if count is not None and tokens:
            found[number] = logprobs(logits[number][: len(tokens)], tokens, count)
    return found
