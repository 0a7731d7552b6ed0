"""What layers with a dense MLP have that sparse ones have not: random weights, and scratch.

M3.1's first layers are sparse ones but for the MLP. M3's attend to all keys: their fused projection
has no indexer's heads. Tensors have the names of the fields of ``LayerArgs``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import fp8_tiles, gates_beside_ups
from infx.engine.mono.cuda.scratch import SHAPE
from infx.engine.mono.shape import GPU_GRAIN, Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["dense_mlp", "dense_scratch", "make_dense_weights", "qkv_heads"]

HIDDEN, HEADS, DIM, DENSE_SIZE = SHAPE.hidden, SHAPE.heads, SHAPE.head_dim, SHAPE.dense_size
LINE = DIM + 4
REACH_PARTITIONS = SHAPE.reach // SHAPE.partition
REACH_GROUPS = -(-REACH_PARTITIONS // GPU_GRAIN.merge_group)


def qkv_heads(kind: Kind) -> int:
    """Return the heads of the fused projection."""
    return SHAPE.head_kinds(kind != "dense")["v"].stop


def dense_mlp(draw: torch.Generator) -> dict[str, Tensor]:
    """Return a dense MLP as kernels read it: 57 MB; a tile of ``up`` has gates, then their ups."""
    both, up_scale = _fp8(draw, 2 * DENSE_SIZE, HIDDEN)
    down, down_scale = _fp8(draw, HIDDEN, DENSE_SIZE)
    return {
        "up": fp8_tiles(gates_beside_ups(both), 1),
        "up_scale": gates_beside_ups(up_scale[:, None])[:, 0].contiguous(),
        "down": fp8_tiles(down, 1),
        "down_scale": down_scale,
    }


def make_dense_weights(seed: int, device: str, kind: Kind) -> dict[str, Tensor]:
    """Return the weights of a layer with a dense MLP, drawn from ``seed``: 86 MB."""
    import torch

    draw, heads = torch.Generator(device).manual_seed(seed), qkv_heads(kind)
    qkv, qkv_scale = _fp8(draw, heads * DIM, HIDDEN)
    o, o_scale = _fp8(draw, HIDDEN, HEADS * DIM)
    return {
        "attention_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "mlp_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "head_norm": 1 + 0.1 * _normal(draw, heads - 1, DIM),
        "qkv": fp8_tiles(qkv, GPU_GRAIN.qkv_parts),
        "qkv_scale": qkv_scale,
        "o": fp8_tiles(o, 1),
        "o_scale": o_scale,
        **dense_mlp(draw),
    }


def dense_scratch(rows: int, kind: Kind, device: str) -> dict[str, Tensor]:
    """Return the scratch that is not as a sparse layer's, poisoned."""
    import torch

    def filled(size: tuple[int, ...], dtype: torch.dtype, value: float = torch.nan) -> Tensor:
        return torch.full(size, value, dtype=dtype, device=device)

    made = {
        "mid_normed": filled((rows, HIDDEN), torch.float16),
        "mid_exponents": filled((rows, HIDDEN // 16), torch.uint8, 255),
        "mids": filled((rows, DENSE_SIZE), torch.float16),
    }
    if kind != "dense":
        return made
    return made | {
        "qkv_sums": filled((GPU_GRAIN.qkv_parts, rows, qkv_heads(kind) * DIM), torch.float32),
        "partials": filled((rows, REACH_PARTITIONS + REACH_GROUPS, HEADS, LINE), torch.float32),
        "merge_counts": filled((rows, 1 + REACH_GROUPS), torch.int32, 0),
    }


def _normal(draw: torch.Generator, *size: int) -> Tensor:
    import torch

    return torch.randn(size, generator=draw, device=draw.device)


def _fp8(draw: torch.Generator, outputs: int, inputs: int) -> tuple[Tensor, Tensor]:
    """Return random e4m3 bytes [outputs, inputs] and their scales [outputs]."""
    import torch

    from infx.engine.quant import fp8_quantise

    numbers, scale = fp8_quantise(_normal(draw, outputs, inputs) / math.sqrt(inputs), -1)
    return numbers.view(torch.uint8), scale[:, 0].contiguous()
