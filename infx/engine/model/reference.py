"""MiniMax-M3 in plain torch, float32: the truth that every faster arm is compared with.

With N(x; w) = x · rsqrt(mean(x²) + eps) · (1 + w), a layer is h += Attention(N(h)), then
h += MLP(N(h)); q and k are normed per head before the rotary positions, the indexer's too. Works on
the paged cache for one `Batch` of rows, whatever they are: chunks, verify rows, pads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from infx.engine.batch import Batch, Group, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.attention import (
    block_scores,
    choose_blocks,
    full_attention,
    pages_of,
    sparse_attention,
)
from infx.engine.model.experts import mix, route
from infx.engine.model.layers import Rotary, Turn, gemma_norm, projection, rotate, swiglu_oai
from infx.engine.refusal import RefusalError
from infx.engine.shapes import ModelConfig

__all__ = ["Reduce", "ReferenceModel"]

Reduce = Callable[[Tensor], Tensor]

# Rows of a pass of `ReferenceModel.logits`: bounds the scores that it holds at once.
CHUNK_ROWS = 512
# Weights that a layer multiplies with by a `projection`.
PRODUCTS = ("qkv", "o", "up", "down")


class ReferenceModel:
    """The target. ``weights`` as `infx.engine.weights.target_weights` names them.

    ``projections`` "fp8" computes attention's and the dense MLP's products from e4m3 numbers: one
    scale a token, one an output channel; head, embedding, router and everything beside it stay.
    ``reduce`` turns one rank's part of a sum into the sum: it is applied to the output of attention
    and of the MLP. ``taps`` are the layers whose output a draft sees: ``aux_layers`` unless said.
    """

    def __init__(
        self,
        shape: ModelConfig,
        weights: Mapping[str, Tensor],
        projections: str = "fp32",
        reduce: Reduce | None = None,
        taps: Sequence[int] | None = None,
    ) -> None:
        self.shape = shape
        self.embed = weights["embed"]
        self._taps = tuple(shape.aux_layers if taps is None else taps)
        self._rotary = Rotary(shape.head_dim, shape.rotary_dim, shape.rope_theta, shape.farthest)
        self._norm, self._head = weights["norm"], weights["head"]
        reduce = reduce or _sum_of_equals(shape.simulated_ranks)
        numbers = range(shape.num_layers)
        self._layers = [_Layer(shape, weights, n, projections, reduce) for n in numbers]

    def forward(self, batch: Batch, cache: KvCache) -> tuple[Tensor, Tensor]:
        """Return the residual stream [R, hidden] and the tapped ones [R, taps · hidden].

        Fills the cache. A tap is the residual stream after its layer.
        """
        stream, turn = self.embed[batch.tokens], self._rotary.at(batch.positions)
        after = {}
        for layer in self._layers:
            stream = layer.forward(stream, turn, batch, cache)
            if layer.number in self._taps:
                after[layer.number] = stream
        return stream, torch.cat([after[tap] for tap in self._taps], dim=-1)

    def head(self, stream: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of residual streams [n, hidden]."""
        return gemma_norm(stream, self._norm, self.shape.rms_norm_eps) @ self._head

    @torch.no_grad()
    def logits(self, token_ids: Sequence[int] | Tensor) -> Tensor:
        """Return float32 logits [T, vocabulary] of one text of T tokens, over a cache of its own.

        Raises RefusalError for an id outside the vocabulary or a text beyond the positions.
        """
        tokens = self._checked(torch.as_tensor(token_ids, dtype=torch.int64)).tolist()
        block = self.shape.block_size
        pages = list(range(-(-len(tokens) // block)))
        cache = KvCache.empty(self.shape, len(pages))
        streams = [torch.empty(0, self.shape.hidden_size)]
        for start in range(0, len(tokens), CHUNK_ROWS):
            span = Span(tokens[start : start + CHUNK_ROWS], start, pages)
            streams.append(self.forward(make_batch([span], block), cache)[0])
        return self.head(torch.cat(streams))

    def _checked(self, tokens: Tensor) -> Tensor:
        shape = self.shape
        if tokens.ndim != 1:
            sizes = list(tokens.shape)
            raise RefusalError("bad-request", f"token_ids of shape {sizes}: expected one text [T]")
        if len(tokens) > shape.max_positions:
            raise RefusalError(
                "context-length-exceeded",
                f"{len(tokens)} token_ids: {shape.name} has {shape.max_positions} positions",
            )
        outside = ((tokens < 0) | (tokens >= shape.vocab_size)).nonzero()[:, 0].tolist()
        if outside:
            raise RefusalError(
                "bad-request",
                f"token_ids[{outside[0]}] is {int(tokens[outside[0]])}: expected 0 to"
                f" {shape.vocab_size - 1}",
            )
        return tokens


def _sum_of_equals(ranks: int) -> Reduce:
    """Return the sum over ``ranks`` that all hold the same part, added in rank order."""

    def reduce(part: Tensor) -> Tensor:
        total = part
        for _ in range(1, ranks):
            total = total + part
        return total

    return reduce


class _Layer:
    def __init__(
        self,
        shape: ModelConfig,
        weights: Mapping[str, Tensor],
        number: int,
        projections: str,
        reduce: Reduce,
    ) -> None:
        prefix = f"layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        self.number, self._shape, self._reduce = number, shape, reduce
        self._sparse = shape.attends_sparsely(number)
        self._routed = shape.has_experts(number)
        heads, kv_heads = shape.heads, shape.kv_heads
        # One projection holds q, k, the indexer's q and k (all normed and turned), then v.
        self._heads = [heads, kv_heads, kv_heads, 1] if self._sparse else [heads, kv_heads]
        self._qkv, self._o = (projection(own[name], projections) for name in ("qkv", "o"))
        mlp = "fp32" if self._routed else projections
        self._up, self._down = (projection(own[name], mlp) for name in ("up", "down"))
        # The products hold what they need: FP8's float32 originals must not stay beside them.
        self._weights = {name: own[name] for name in own if name not in PRODUCTS}
        if self._routed and shape.router_dtype == "bf16":
            self._weights["router"] = own["router"].bfloat16().float()

    def forward(self, stream: Tensor, turn: Turn, batch: Batch, cache: KvCache) -> Tensor:
        x = self._normed(stream, "attention_norm")
        stream = stream + self._reduce(self._attention(x, turn, batch, cache))
        x = self._normed(stream, "mlp_norm")
        return stream + self._reduce(self._experts(x, batch) if self._routed else self._mlp(x))

    def _normed(self, x: Tensor, name: str) -> Tensor:
        return gemma_norm(x, self._weights[name], self._shape.rms_norm_eps)

    def _attention(self, x: Tensor, turn: Turn, batch: Batch, cache: KvCache) -> Tensor:
        shape = self._shape
        flat = self._qkv(x).view(batch.rows, -1, shape.head_dim)
        turning, values = flat[:, : -shape.kv_heads], flat[:, -shape.kv_heads :]
        turned = rotate(self._normed(turning, "head_norm"), turn)
        queries, keys, *index = torch.split(turned, self._heads, dim=1)
        cache.write(self.number, batch.slots, keys[batch.live], values[batch.live])
        if self._sparse:
            cache.write_index(self.number, batch.slots, index[1][batch.live, 0])
        out = torch.empty(batch.rows, shape.heads * shape.head_dim)
        out[batch.grouped :] = 0
        for group in batch.groups:
            mixed = self._group(queries, index, batch.positions, group, cache)
            out[group.slice] = mixed.reshape(-1, out.shape[1])
        return self._o(out)

    def _group(
        self, q: Tensor, index: list[Tensor], positions: Tensor, group: Group, cache: KvCache
    ) -> Tensor:
        shape, rectangle = self._shape, (group.spans, group.rows)
        queries = cache.query(q[group.slice]).view(*rectangle, shape.heads, shape.head_dim)
        at = positions[group.slice].view(rectangle)
        if not self._sparse:
            keys, values = cache.read(self.number, group.table[:, None])
            return full_attention(queries, keys, values, at)
        block, topk = shape.block_size, shape.topk_blocks
        index_queries = index[0][group.slice].view(*rectangle, shape.kv_heads, shape.head_dim)
        index_keys = cache.read_index(self.number, group.table)
        scores = block_scores(index_queries, index_keys, at, block)
        chosen = choose_blocks(scores, at, block, topk)
        keys, values = cache.read(self.number, pages_of(group.table, chosen))
        return sparse_attention(queries, keys, values, at, chosen)

    def _mlp(self, x: Tensor) -> Tensor:
        shape = self._shape
        return self._down(swiglu_oai(self._up(x), shape.swiglu_alpha, shape.swiglu_limit))

    def _experts(self, x: Tensor, batch: Batch) -> Tensor:
        """Return experts and shared expert; pads read no expert and get the shared one alone."""
        weights, shape = self._weights, self._shape
        live = x[batch.live]
        chosen, weight = route(
            live,
            weights["router"],
            weights["router_bias"],
            shape.experts_per_token,
            shape.routed_scaling_factor,
        )
        mixed = mix(
            live,
            chosen,
            weight,
            weights["experts_up"],
            weights["experts_down"],
            shape.swiglu_alpha,
            shape.swiglu_limit,
        )
        return self._mlp(x).index_add(0, batch.live, mixed)
