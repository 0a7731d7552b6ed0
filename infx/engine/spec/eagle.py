"""The EAGLE3-shaped draft: one decoder layer that guesses the next tokens from the target's states.

A row at position p reads the embedding of token p and the *feature* of position p - 1: fc over the
target's three auxiliary states there. Later drafts of a step have no target state yet and read the
draft's own output instead; the next step's first pass writes those positions again from the real
features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import silu

from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.attention import full_attention
from infx.engine.model.layers import Rotary, gemma_norm, rotate
from infx.engine.scheduler import Step, Work
from infx.engine.shapes import ModelConfig

__all__ = ["EagleDraft", "EagleDrafter"]


class EagleDraft:
    """The draft: ``weights`` as `weights.draft_weights` names them, ``embed`` the target's."""

    def __init__(self, shape: ModelConfig, weights: Mapping[str, Tensor], embed: Tensor) -> None:
        self._shape, self._weights, self._embed = shape, weights, embed
        self._rotary = Rotary(shape.head_dim, shape.head_dim, shape.rope_theta, shape.farthest)

    def store_features(self, aux: Tensor, batch: Batch, cache: KvCache) -> None:
        """Keep fc(aux) [R, 3 hidden] of the batch's real rows by slot."""
        cache.features[batch.slots] = aux[batch.live] @ self._weights["fc"]

    def features(self, batch: Batch, cache: KvCache) -> Tensor:
        """Return the stored features [R, hidden] of the positions before; zeros at position 0."""
        return cache.features[batch.previous] * (batch.positions > 0)[:, None]

    def forward(self, batch: Batch, features: Tensor, cache: KvCache) -> Tensor:
        """Return the residual stream [R, hidden] after the layer; fills the draft's own cache."""
        x = torch.cat(
            [
                self._normed(self._embed[batch.tokens], "embed_norm"),
                self._normed(features, "feature_norm"),
            ],
            dim=-1,
        )
        stream = features + self._attention(x, batch, cache)
        gate, up = (self._normed(stream, "mlp_norm") @ self._weights["up"]).chunk(2, dim=-1)
        return stream + (silu(gate) * up) @ self._weights["down"]

    def logits(self, stream: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of streams [n, hidden]."""
        return self._normed(stream, "norm") @ self._weights["head"]

    def _normed(self, x: Tensor, name: str) -> Tensor:
        return gemma_norm(x, self._weights[name], self._shape.rms_norm_eps)

    def _attention(self, x: Tensor, batch: Batch, cache: KvCache) -> Tensor:
        shape, layer = self._shape, self._shape.num_layers
        flat = (x @ self._weights["qkv"]).view(batch.rows, -1, shape.head_dim)
        turning, values = flat[:, : -shape.kv_heads], flat[:, -shape.kv_heads :]
        turned = rotate(turning, self._rotary.at(batch.positions))
        queries, keys = cache.query(turned[:, : shape.heads]), turned[:, shape.heads :]
        cache.write(layer, batch.slots, keys[batch.live], values[batch.live])
        out = torch.empty(batch.rows, shape.heads * shape.head_dim)
        for group in batch.groups:
            rectangle = (group.spans, group.rows)
            mixed = full_attention(
                queries[group.slice].view(*rectangle, shape.heads, shape.head_dim),
                *cache.read(layer, group.table[:, None]),
                batch.positions[group.slice].view(rectangle),
            )
            out[group.slice] = mixed.reshape(-1, out.shape[1])
        return out @ self._weights["o"]


class EagleDrafter:
    """Proposes ``k`` ids below ``vocabulary``, one draft pass after another."""

    def __init__(self, draft: EagleDraft, vocabulary: int, k: int) -> None:
        self._draft, self._vocabulary, self._k = draft, vocabulary, k

    def observe(self, aux: Tensor, batch: Batch, cache: KvCache) -> None:
        """Keep the features of the batch's real rows."""
        self._draft.store_features(aux, batch, cache)

    def propose(self, step: Step, emitted: Sequence[list[int]], cache: KvCache) -> list[list[int]]:
        """Return K drafts for each work that chose a token.

        The first pass covers the positions whose real feature is now known, up to the newest token;
        the later ones a row a request, fed with the draft's own output.
        """
        draft = self._draft
        spans = [_known(step, number, emitted[number]) for number in range(len(step.work))]
        batch = make_batch(spans, cache.block)
        stream = draft.forward(batch, draft.features(batch, cache), cache)
        going = [number for number, work in enumerate(step.work) if work.last]
        drafts: list[list[int]] = [[] for _ in spans]
        if not going:
            return drafts
        ends = [batch.firsts[number] + len(spans[number].tokens) - 1 for number in going]
        stream = stream[ends]
        for depth in range(self._k):
            guesses = draft.logits(stream)[:, : self._vocabulary].argmax(-1).tolist()
            for number, guess in zip(going, guesses, strict=True):
                drafts[number].append(guess)
            if depth + 1 < self._k:
                ahead = [_ahead(spans[n], drafts[n][-1], depth, step.work[n]) for n in going]
                stream = draft.forward(make_batch(ahead, cache.block), stream, cache)
        return drafts


def _known(step: Step, number: int, emitted: list[int]) -> Span:
    """Return the draft's rows of a work: tokens from the first without a draft key onwards."""
    work, request = step.work[number], step.work[number].request
    if number < len(step.decodes):
        dead = len(work.tokens) - len(emitted)
        return Span(emitted, work.start + 1, request.pages, dead)
    end = work.start + len(work.tokens)
    known = [*request.tokens[request.drafted : end + 1], *emitted]
    return Span(known, request.drafted, request.pages)


def _ahead(span: Span, token: int, depth: int, work: Work) -> Span:
    return Span([token], span.start + len(span.tokens) + depth, work.request.pages)
