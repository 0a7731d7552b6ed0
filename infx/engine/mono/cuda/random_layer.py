"""Random layers of one TP4 rank at true shapes, and a random step: what bench and checks run on.

Weights are drawn on the device in the order in which kernels read them; a judge takes them apart
again (`infx.engine.mono.cuda.judge`). Routing is that of the router on random streams: uniform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.arguments import LayerArgs, args_of
from infx.engine.mono.cuda.packing import (
    MOST_BELOW,
    NUMBER_BYTES,
    PIECE,
    SCALE_BYTES,
    SLOT_BYTES,
    bf16_tiles,
    fp8_tiles,
)
from infx.engine.mono.cuda.scratch import QKV_HEADS, SHAPE, StepBuffers, scratch
from infx.engine.mono.shape import GPU_GRAIN

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["HIDDEN", "RandomLayer", "Step", "make_layer", "make_step", "make_weights", "narrowed"]

HIDDEN, HEADS, DIM, ROTARY = SHAPE.hidden, SHAPE.heads, SHAPE.head_dim, SHAPE.rotary_dim
BLOCK, TOPK_BLOCKS = SHAPE.block, SHAPE.topk_blocks
EXPERTS, TOPK, EXPERT_SIZE = SHAPE.experts, SHAPE.experts_per_token, SHAPE.expert_size
QKV_PARTS, ROUTER_PARTS = GPU_GRAIN.qkv_parts, GPU_GRAIN.router_parts
# Scales of MXFP4 groups that are drawn: numbers of about 3 x 2^-9, so that a layer keeps its size.
SCALES = (117, 120)


@dataclass(frozen=True, slots=True)
class RandomLayer:
    """Tensors of a layer by the names of `LayerArgs`: weights as packed, caches, norms."""

    tensors: dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of ``rows`` rows, each a request of its own at the end of ``context`` tokens."""

    rows: int
    context: int
    pages_a_row: int
    tensors: dict[str, Tensor]

    def args(self, layer: RandomLayer, stream_in: Tensor, stream_out: Tensor) -> LayerArgs:
        """Return what kernels get to run ``layer`` on this step."""
        streams = {"stream_in": stream_in, "stream_out": stream_out}
        return args_of(self.tensors | layer.tensors | streams)


def make_weights(seed: int, device: str) -> dict[str, Tensor]:
    """Return a layer's weights on ``device``; 1 GB, of which 970 MB are experts."""
    import torch

    draw = torch.Generator(device).manual_seed(seed)
    tensors: dict[str, Tensor] = {
        "attention_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "mlp_norm": 1 + 0.1 * _normal(draw, HIDDEN),
        "head_norm": 1 + 0.1 * _normal(draw, QKV_HEADS - 1, DIM),
        "router_bias": 0.01 * _normal(draw, EXPERTS),
    }
    for name, outputs, inputs, parts in (
        ("qkv", QKV_HEADS * DIM, HIDDEN, QKV_PARTS),
        ("o", HIDDEN, HEADS * DIM, 1),
    ):
        numbers, scale = _fp8(_normal(draw, outputs, inputs) / math.sqrt(inputs))
        tensors[name], tensors[f"{name}_scale"] = fp8_tiles(numbers, parts), scale
    router = (_normal(draw, EXPERTS, HIDDEN) / math.sqrt(HIDDEN)).bfloat16()
    tensors["router"] = bf16_tiles(router.view(torch.int16), ROUTER_PARTS)
    count = EXPERTS + 1  # the shared one last
    tensors["up"] = _pieces(draw, count, HIDDEN // PIECE, 2 * EXPERT_SIZE // 16)
    tensors["down"] = _pieces(draw, count, EXPERT_SIZE // PIECE, HIDDEN // 16)
    return tensors


def make_layer(seed: int, pages: int) -> RandomLayer:
    """Return a layer with fp8 caches of ``pages`` pages."""
    import torch

    draw, tensors = torch.Generator("cuda").manual_seed(~seed), make_weights(seed, "cuda")
    for name in ("keys", "values", "index_keys"):
        numbers, scale = _fp8(_normal(draw, pages * BLOCK, DIM))
        tensors[name] = numbers
        if name != "index_keys":
            tensors[name.removesuffix("s") + "_scales"] = scale
    return RandomLayer(tensors)


def make_step(rows: int, context: int, pads: int = 0) -> Step:
    """Return a step whose last ``pads`` rows are pads, with everything that a layer computes in."""
    import torch

    draw = torch.Generator("cuda").manual_seed(1000)
    pages_a_row = -(-context // BLOCK)
    row = torch.arange(rows, device="cuda", dtype=torch.int32)
    pages = torch.randperm(rows * pages_a_row, generator=draw, device="cuda").int()
    pages = pages.view(rows, pages_a_row)
    positions = torch.full_like(row, context - 1)
    last = pages[row.long(), (positions // BLOCK).long()]
    slots = last * BLOCK + positions % BLOCK
    buffers = StepBuffers(rows, "cuda", pages_a_row)
    buffers.take(torch.where(row < rows - pads, row, -1), positions, slots, pages)
    return Step(rows, context, pages_a_row, buffers.tensors | scratch(rows, "cuda"))


def narrowed(step: Step, rows: int) -> Step:
    """Return the first ``rows`` rows of ``step``, with scratch of their own."""
    inputs = ("batch_ids", "positions", "slots", "pages", "rotary")
    kept = {name: step.tensors[name][:rows].contiguous() for name in inputs}
    return Step(rows, step.context, step.pages_a_row, kept | scratch(rows, "cuda"))


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
    """Return random MXFP4 pieces: any bits are numbers, scales are of `SCALES`."""
    import torch

    size = (experts, pieces, tiles, SLOT_BYTES)
    data = torch.randint(0, 256, size, generator=draw, device=draw.device, dtype=torch.uint8)
    size = (*size[:-1], SCALE_BYTES)
    lowest = MOST_BELOW + SCALES[0] - SCALES[1]
    low, high = (
        torch.randint(lowest, MOST_BELOW + 1, size, generator=draw, device=draw.device)
        for _ in range(2)
    )
    data[..., NUMBER_BYTES : NUMBER_BYTES + SCALE_BYTES] = low | high << 4
    data[..., NUMBER_BYTES + SCALE_BYTES :] = SCALES[1]
    return data
