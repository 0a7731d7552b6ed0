"""Computes a step: target over all rows, tokens chosen and verified, drafts for the next step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from infx.domain.acceptance import uniform
from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.sampling import Draw, sample
from infx.engine.scheduler import Result, Step, Work
from infx.engine.spec.eagle import EagleDraft
from infx.engine.spec.verify import verdict_of
from infx.engine.weights import draft_weights, target_weights

__all__ = ["Runner", "padded_width"]


def padded_width(rows: int, capture_sizes: Sequence[int]) -> int:
    """Return the rows that a decode step of ``rows`` runs: the next capture size, or ``rows``."""
    return next((size for size in capture_sizes if size >= rows), rows)


class Runner:
    """The model, its draft and the cache. ``vocabulary`` is the number of ids with a meaning."""

    def __init__(self, config: EngineConfig, vocabulary: int) -> None:
        shape, seed = config.shape, config.weights_seed
        self._config, self._vocabulary, self._block = config, vocabulary, shape.block_size
        self._model = ReferenceModel(shape, target_weights(shape, seed))
        self._cache = KvCache.empty(shape, config.pages)
        self._verdict = verdict_of(config.acceptance, config.acceptance_seed)
        self._draft: EagleDraft | None = None
        if config.k:
            self._draft = EagleDraft(shape, draft_weights(shape, seed), self._model.embed)

    @torch.inference_mode()
    def run(self, step: Step) -> Result:
        """Return what ``step`` emits and the next drafts, in the order of ``step.work``."""
        spans = [Span(work.tokens, work.start, work.request.pages) for work in step.work]
        batch = make_batch(spans, self._block, self.width(step))
        hidden, aux = self._model.forward(batch, self._cache)
        emitted = self._emit(step, batch, hidden)
        if self._draft is None:
            return Result(emitted, [[] for _ in spans])
        self._draft.store_features(aux, batch, self._cache)
        return Result(emitted, self._drafts(self._draft, step, emitted))

    def width(self, step: Step) -> int:
        """Return the rows that ``step`` runs: decode steps are padded to a capture size."""
        rows = sum(len(work.tokens) for work in step.work)
        return rows if step.prefills else padded_width(rows, self._config.capture_sizes)

    def _emit(self, step: Step, batch: Batch, hidden: Tensor) -> list[list[int]]:
        """Return the emitted tokens of each work; none where a prompt is not yet at its end."""
        rows: list[int] = []
        draws: list[Draw] = []
        for number, work in enumerate(step.work):
            count = self._choosing(step, number)
            end = batch.firsts[number] + len(work.tokens)
            rows += range(end - count, end)
            draws += [self._draw(work, index) for index in range(count)]
        if not rows:
            return [[] for _ in step.work]
        # A decode step's head runs at the padded width, like the layers below it.
        wide = hidden[rows] if step.prefills else hidden
        logits = self._model.logits(wide)[: len(rows), : self._vocabulary]
        chosen = iter(sample(logits, draws))
        return [
            self._judge(step, number, [next(chosen) for _ in range(self._choosing(step, number))])
            for number in range(len(step.work))
        ]

    def _choosing(self, step: Step, number: int) -> int:
        """Return how many rows of a work choose a token: all in decode, at most one in prefill."""
        work = step.work[number]
        return len(work.tokens) if number < len(step.decodes) else int(work.last)

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
            seed = params.seed if params.seed is not None else self._config.weights_seed
            point = uniform(seed, 0 if own else request.number + 1, at)
        banned = request.eos if at + 1 < params.min_tokens else frozenset[int]()
        return Draw(params.temperature, params.top_p, params.top_k, point, banned)

    def _drafts(
        self, draft: EagleDraft, step: Step, emitted: Sequence[list[int]]
    ) -> list[list[int]]:
        """Return K drafts for each work that chose a token.

        The first pass covers the positions whose real feature is now known, up to the newest token;
        the later ones a row a request, fed with the draft's own output.
        """
        spans = [self._known(step, number, emitted[number]) for number in range(len(step.work))]
        batch = make_batch(spans, self._block)
        stream = draft.forward(batch, draft.features(batch, self._cache), self._cache)
        going = [number for number, work in enumerate(step.work) if work.last]
        drafts: list[list[int]] = [[] for _ in spans]
        if not going:
            return drafts
        ends = [batch.firsts[number] + len(spans[number].tokens) - 1 for number in going]
        stream = stream[ends]
        for depth in range(self._config.k):
            guesses = draft.logits(stream)[:, : self._vocabulary].argmax(-1).tolist()
            for number, guess in zip(going, guesses, strict=True):
                drafts[number].append(guess)
            if depth + 1 < self._config.k:
                ahead = [self._ahead(spans[n], drafts[n][-1], depth, step.work[n]) for n in going]
                stream = draft.forward(make_batch(ahead, self._block), stream, self._cache)
        return drafts

    def _known(self, step: Step, number: int, emitted: list[int]) -> Span:
        """Return the draft's rows of a work: tokens from the first without a draft key onwards."""
        work, request = step.work[number], step.work[number].request
        if number < len(step.decodes):
            dead = len(work.tokens) - len(emitted)
            return Span(emitted, work.start + 1, request.pages, dead)
        end = work.start + len(work.tokens)
        known = [*request.tokens[request.drafted : end + 1], *emitted]
        return Span(known, request.drafted, request.pages)

    def _ahead(self, span: Span, token: int, depth: int, work: Work) -> Span:
        return Span([token], span.start + len(span.tokens) + depth, work.request.pages)
