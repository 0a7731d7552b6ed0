"""MiniMax-M3 in plain torch, float32: the truth that every faster arm is compared with.

With N(x; w) = x · rsqrt(mean(x²) + eps) · (1 + w), a layer is h += Attention(N(h)), then
h += MLP(N(h)); q and k are normed per head before the rotary positions, the indexer's too. Works on
the paged cache for one `Batch` of rows, whatever they are: chunks, verify rows, pads.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from infx.engine.batch import Batch, Group
from infx.engine.cache import KvCache
from infx.engine.model.attention import (
    block_scores,
    choose_blocks,
    full_attention,
    sparse_attention,
)
from infx.engine.model.experts import mix, route
from infx.engine.model.layers import Rotary, Turn, gemma_norm, rotate, swiglu_oai
from infx.engine.shapes import ModelConfig

__all__ = ["ReferenceModel"]


class ReferenceModel:
    """The target. ``weights`` as `infx.engine.weights.target_weights` names them."""

    def __init__(self, shape: ModelConfig, weights: Mapping[str, Tensor]) -> None:
        self.shape = shape
        self.embed = weights["embed"]
        self._rotary = Rotary(shape.head_dim, shape.rotary_dim, shape.rope_theta, shape.farthest)
        self._norm, self._head = weights["norm"], weights["head"]
        self._layers = [_Layer(shape, weights, number) for number in range(shape.num_layers)]

    def forward(self, batch: Batch, cache: KvCache) -> tuple[Tensor, Tensor]:
        """Return hidden states [R, hidden] and auxiliary ones [R, 3 hidden]; fills the cache.

        Auxiliary states are the residual stream after each of the shape's ``aux_layers``.
        """
        stream, turn = self.embed[batch.tokens], self._rotary.at(batch.positions)
        tapped = []
        for layer in self._layers:
            stream = layer.forward(stream, turn, batch, cache)
            if layer.number in self.shape.aux_layers:
                tapped.append(stream)
        return stream, torch.cat(tapped, dim=-1)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of hidden states [n, hidden]."""
        return gemma_norm(hidden, self._norm, self.shape.rms_norm_eps) @ self._head


class _Layer:
    def __init__(self, shape: ModelConfig, weights: Mapping[str, Tensor], number: int) -> None:
        prefix = f"layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        self.number, self._shape, self._weights = number, shape, own
        self._sparse = number >= shape.dense_layers
        heads, kv_heads = shape.heads, shape.kv_heads
        # One projection holds q, k, the indexer's q and k (all normed and turned), then v.
        self._heads = [heads, kv_heads, kv_heads, 1] if self._sparse else [heads, kv_heads]

    def forward(self, stream: Tensor, turn: Turn, batch: Batch, cache: KvCache) -> Tensor:
        x = self._normed(stream, "attention_norm")
        stream = stream + self._attention(x, turn, batch, cache)
        x = self._normed(stream, "mlp_norm")
        return stream + (self._experts(x, batch) if self._sparse else self._mlp(x))

    def _normed(self, x: Tensor, name: str) -> Tensor:
        return gemma_norm(x, self._weights[name], self._shape.rms_norm_eps)

    def _attention(self, x: Tensor, turn: Turn, batch: Batch, cache: KvCache) -> Tensor:
        shape = self._shape
        flat = (x @ self._weights["qkv"]).view(batch.rows, -1, shape.head_dim)
        turning, values = flat[:, : -shape.kv_heads], flat[:, -shape.kv_heads :]
        turned = rotate(self._normed(turning, "head_norm"), turn)
        queries, keys, *index = torch.split(turned, self._heads, dim=1)
        cache.write(self.number, batch.slots, keys[batch.live], values[batch.live])
        if self._sparse:
            cache.index_keys[self.number, batch.slots] = index[1][batch.live, 0]
        out = torch.empty(batch.rows, shape.heads * shape.head_dim)
        out[batch.grouped :] = 0
        for group in batch.groups:
            mixed = self._group(queries, index, batch.positions, group, cache)
            out[group.slice] = mixed.reshape(-1, out.shape[1])
        return out @ self._weights["o"]

    def _group(
        self, q: Tensor, index: list[Tensor], positions: Tensor, group: Group, cache: KvCache
    ) -> Tensor:
        shape, rectangle = self._shape, (group.spans, group.rows)
        queries = q[group.slice].view(*rectangle, shape.heads, shape.head_dim)
        at = positions[group.slice].view(rectangle)
        keys, values = cache.keys[self.number], cache.values[self.number]
        if not self._sparse:
            return full_attention(queries, keys, values, group.table, at)
        block, topk = shape.block_size, shape.topk_blocks
        index_queries = index[0][group.slice].view(*rectangle, shape.kv_heads, shape.head_dim)
        index_keys = cache.index_keys[self.number]
        scores = block_scores(index_queries, index_keys, group.table, at, block)
        chosen = choose_blocks(scores, at, block, topk)
        return sparse_attention(queries, keys, values, group.table, at, chosen)

    def _mlp(self, x: Tensor) -> Tensor:
        weights, shape = self._weights, self._shape
        inner = swiglu_oai(x @ weights["up"], shape.swiglu_alpha, shape.swiglu_limit)
        return inner @ weights["down"]

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
