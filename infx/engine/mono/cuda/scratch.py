"""What kernels work in, beside weights and caches: the numbers of a step, and scratch.

Addresses never change, so a captured graph that ran once runs on whatever the buffers then hold.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from infx.engine.mono.shape import GPU_GRAIN, H200, SHAPES

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["KEPT", "SHAPE", "StepBuffers", "rotary_table", "scratch", "scratch_bytes"]

SHAPE = SHAPES["m3_tp4_rank"]
QKV_HEADS = SHAPE.heads + 4
PARTITIONS = SHAPE.topk_blocks * SHAPE.block // SHAPE.partition
OUT_BLOCKS = 128  # blocks that have tiles of the stream
MARKS = 64
DEAL_BYTES = 4096
NEVER = -7  # no block has this number
# Words that hand-offs count in, and their record: they begin at 0 and are never filled again.
KEPT = ("barrier", "merge_counts", "give_up")


def scratch(rows: int, device: str) -> dict[str, Tensor]:
    """Return everything that stages hand on, poisoned: what nobody writes shows up as NaN."""
    import torch

    heads, dim, topk = SHAPE.heads, SHAPE.head_dim, SHAPE.experts_per_token
    nan = {
        "qkv_sums": (GPU_GRAIN.qkv_parts, rows, QKV_HEADS * dim),
        "qkv_squares": (GPU_GRAIN.qkv_parts, rows),
        "queries": (heads, rows, dim),
        "scores": (rows, SHAPE.pages),
        "partials": (rows, PARTITIONS, heads, dim + 4),
        "merged": (heads, rows, dim),
        "attended_back": (heads, rows),
        "mid": (rows, SHAPE.hidden),
        "mid_squares": (OUT_BLOCKS, rows),
        "logit_sums": (GPU_GRAIN.router_parts, rows, SHAPE.experts),
        "routing": (rows, 2 * topk),
    }
    half = {
        "attended": ((heads, rows, dim), torch.float16),
        "mid_normed": ((rows, SHAPE.hidden), torch.bfloat16),
        "mids": ((rows, SHAPE.slots, SHAPE.expert_size), torch.bfloat16),
    }
    whole = {
        "deal": ((DEAL_BYTES,), torch.uint8),
        "trace": ((H200.blocks, MARKS), torch.int64),
        "barrier": ((1,), torch.int32),
        "merge_counts": ((rows,), torch.int32),
        "give_up": ((4,), torch.int32),
    }
    made = {name: torch.full(size, torch.nan, device=device) for name, size in nan.items()}
    for name, (shape, dtype) in half.items():
        made[name] = torch.full(shape, torch.nan, dtype=dtype, device=device)
    for name, (shape, dtype) in whole.items():
        made[name] = torch.zeros(shape, dtype=dtype, device=device)
    size = (rows, SHAPE.topk_blocks)
    made["chosen"] = torch.full(size, NEVER, dtype=torch.int32, device=device)
    return made


def scratch_bytes(rows: int) -> int:
    """Return the bytes of everything that a build of ``rows`` rows works in."""
    buffers = StepBuffers(rows, "meta").tensors
    return sum(tensor.nbytes for tensor in (scratch(rows, "meta") | buffers).values())


@functools.cache
def rotary_table(device: str) -> Tensor:
    """Return cosines, then sines, of each position's angles [reach, rotary dim], float32."""
    import torch

    pairs = torch.arange(0, SHAPE.rotary_dim, 2, dtype=torch.float64, device=device)
    inverse = SHAPE.rope_theta ** -(pairs / SHAPE.rotary_dim)
    positions = torch.arange(SHAPE.reach, dtype=torch.float64, device=device)
    angles = positions[:, None] * inverse
    return torch.cat((angles.cos(), angles.sin()), dim=1).float()


class StepBuffers:
    """A step of up to ``rows`` rows as kernels read it; ``pages`` are those of the longest."""

    def __init__(self, rows: int, device: str, pages: int = SHAPE.pages) -> None:
        import torch

        self._device = device
        self.tensors = {
            "batch_ids": torch.full((rows,), -1, dtype=torch.int32, device=device),
            "positions": torch.zeros(rows, dtype=torch.int32, device=device),
            "slots": torch.zeros(rows, dtype=torch.int32, device=device),
            "pages": torch.zeros((rows, pages), dtype=torch.int32, device=device),
            "rotary": torch.zeros((rows, SHAPE.rotary_dim), device=device),
        }

    def take(self, ids: Tensor, positions: Tensor, slots: Tensor, pages: Tensor) -> None:
        """Copy n rows: ids (-1: a pad), positions, slots [n], pages [n, m]; the rest are pads.

        On the current stream, without an allocation where the tensors are on the device already.
        """
        import torch

        own, rows = self.tensors, len(ids)
        for name, given in (("batch_ids", ids), ("positions", positions), ("slots", slots)):
            own[name][:rows].copy_(given, non_blocking=True)
        most = min(own["pages"].shape[1], pages.shape[1])
        own["pages"][:rows, :most].copy_(pages[:, :most], non_blocking=True)
        own["batch_ids"][rows:].fill_(-1)
        own["positions"][rows:].zero_()
        own["slots"][rows:].zero_()
        torch.index_select(rotary_table(self._device), 0, own["positions"], out=own["rotary"])
