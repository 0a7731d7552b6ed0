"""Random layers of one TP4 rank at true shapes: weights as packed, and caches of every kind.

All is drawn on the device in the order in which kernels read it; a judge takes it apart again
(`infx.engine.mono.cuda.judge`). Routing is that of the router on random streams: nearly uniform.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.dense_layer import make_dense_weights
from infx.engine.mono.cuda.packing import (
    MOST_BELOW,
    NUMBER_BYTES,
    PIECE,
    SCALE_BYTES,
    SLOT_BYTES,
    bf16_tiles,
    fp8_tiles,
)
from infx.engine.mono.cuda.scratch import QKV_HEADS, SHAPE
from infx.engine.mono.cuda.store import Store
from infx.engine.mono.shape import GPU_GRAIN, Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["Layer", "copied", "make_caches", "make_layer", "make_weights"]

HIDDEN, HEADS, DIM, BLOCK = SHAPE.hidden, SHAPE.heads, SHAPE.head_dim, SHAPE.block
# The largest scale of each slice of MXFP4, the others are up to three below it: numbers of about
# 3 x 2^-9, so that a layer keeps its size.
TOP_SCALE = 120
CHUNK = 1 << 16  # tokens whose float32 vectors are in memory at once: 34 MB, a few times over


@dataclass(frozen=True, slots=True)
class Layer:
    """``weights`` by field of ``LayerArgs``, as packed, and the caches."""

    weights: dict[str, Tensor]
    keys: Store
    values: Store
    index: Store

    @property
    def stores(self) -> tuple[Store, Store, Store]:
        """Keys, values, index keys."""
        return self.keys, self.values, self.index

    @property
    def fields(self) -> dict[str, Tensor]:
        """Every tensor that kernels get of the layer, by field."""
        fields = dict(self.weights)
        for name, store in zip(("key", "value", "index"), self.stores, strict=True):
            fields["index_keys" if name == "index" else f"{name}s"] = store.numbers
            if store.scales is not None:
                fields[f"{name}_scales"] = store.scales
        return fields


def copied(layer: Layer) -> Layer:
    """Return the layer with caches of its own; weights are shared."""
    return Layer(layer.weights, *(store.clone() for store in layer.stores))


def make_layer(
    seed: int, slots: Tensor, pages: int, kv: str, index: str, kind: Kind = "sparse"
) -> Layer:
    """Return a layer on the device of ``slots``; the arguments are those of `make_caches`.

    A sparse one is 1 GB and the caches, of which 970 MB are experts; the others are 86 MB.
    """
    make = make_weights if kind == "sparse" else functools.partial(make_dense_weights, kind=kind)
    weights = make(seed, str(slots.device))
    return Layer(weights, *make_caches(seed, slots, pages, kv, index))


def make_weights(seed: int, device: str, experts: int = SHAPE.experts) -> dict[str, Tensor]:
    """Return weights drawn from ``seed``; of ``experts`` experts and the shared one, the last."""
    import torch

    draw = torch.Generator(device).manual_seed(seed)
    weights: dict[str, Tensor] = {
        "attention_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "mlp_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "head_norm": 1 + 0.1 * _normal(draw, QKV_HEADS - 1, DIM),  # all but the values'
        "router_bias": 0.01 * _normal(draw, SHAPE.experts),
    }
    for name, outputs, inputs, parts in (
        ("qkv", QKV_HEADS * DIM, HIDDEN, GPU_GRAIN.qkv_parts),
        ("o", HIDDEN, HEADS * DIM, 1),
    ):
        numbers, scale = _fp8(_normal(draw, outputs, inputs) / math.sqrt(inputs))
        weights[name], weights[f"{name}_scale"] = fp8_tiles(numbers, parts), scale
    router = (_normal(draw, SHAPE.experts, HIDDEN) / math.sqrt(HIDDEN)).bfloat16()
    weights["router"] = bf16_tiles(router.view(torch.int16), GPU_GRAIN.router_parts)
    size = SHAPE.expert_size
    weights["up"] = _pieces(draw, experts + 1, HIDDEN // PIECE, 2 * size // 16)
    weights["down"] = _pieces(draw, experts + 1, size // PIECE, HIDDEN // 16)
    return weights


def make_caches(
    seed: int, slots: Tensor, pages: int, kv: str, index: str
) -> tuple[Store, Store, Store]:
    """Return ``pages`` pages of keys, values and index keys with tokens at ``slots``; the rest is
    NaN."""
    import torch

    device = str(slots.device)
    draw = torch.Generator(device).manual_seed(seed + 1_000_000)
    keys, values = (Store.unwritten(kv, True, pages, device) for _ in range(2))
    stores = keys, values, Store.unwritten(index, False, pages, device)
    # Normed keys have a length of about sqrt(dim); one direction in common, as trained keys have.
    common = 0.5 * _normal(draw, DIM)
    for part in torch.split(slots, CHUNK):
        for store, shared in zip(stores, (1, 0, 1), strict=True):
            store.write(part, _normal(draw, len(part), DIM) + shared * common)
    return stores


def _normal(draw: torch.Generator, *size: int) -> Tensor:
    import torch

    return torch.randn(size, generator=draw, device=draw.device)


def _fp8(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return e4m3 bytes and their scales, one a row."""
    import torch

    from infx.engine.quant import fp8_quantise

    numbers, scale = fp8_quantise(weight, -1)
    return numbers.view(torch.uint8), scale[:, 0].contiguous()


def _pieces(draw: torch.Generator, experts: int, pieces: int, tiles: int) -> Tensor:
    """Return random MXFP4 pieces: any bits are numbers, scales are of `TOP_SCALE`.

    Drawn in place, eight bytes a number.
    """
    import torch

    size = (experts, pieces, tiles, SLOT_BYTES)
    words = torch.empty(math.prod(size) // 8, dtype=torch.int64, device=draw.device)
    data = words.random_(-(2**63), None, generator=draw).view(torch.uint8).view(size)
    ends = data[..., NUMBER_BYTES:].view(*size[:-1], 16, SCALE_BYTES)
    # Two bits of each drawn nibble say how far below the largest scale it is.
    ends[..., :-2].bitwise_and_(0x33).bitwise_or_((MOST_BELOW & 12) * 17)
    ends[..., -2:] = TOP_SCALE
    return data
