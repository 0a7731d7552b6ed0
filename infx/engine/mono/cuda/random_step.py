"""A step of requests at true shapes: what kernels read of it, and everything they compute in.

Needs torch and no GPU: the emulated kernels of the tests run the same steps. Tensors have the names
of the fields of ``LayerArgs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.dense_layer import dense_scratch
from infx.engine.mono.cuda.scratch import StepBuffers, scratch
from infx.engine.mono.cuda.setting import SHAPE, Asked
from infx.engine.mono.shape import Kind

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Step", "deal_pages", "held_slots", "make_step", "picked"]

BLOCK = SHAPE.block
INPUTS = ("batch_ids", "positions", "slots", "pages", "rotary")


@dataclass(frozen=True, slots=True)
class Step:
    """``requests`` in ``rows`` rows, the rest pads; ``tables`` are the pages of each request.

    ``kind``: of the layers that it has scratch for.
    """

    requests: tuple[Asked, ...]
    rows: int
    tables: list[list[int]]
    tensors: dict[str, Tensor]
    kind: Kind = "sparse"

    @property
    def live(self) -> int:
        """Rows that are no pads."""
        return sum(asked.rows for asked in self.requests)

    @property
    def spans(self) -> list[tuple[Asked, list[int], slice]]:
        """Each request with its pages and its rows."""
        spans, first = [], 0
        for asked, pages in zip(self.requests, self.tables, strict=True):
            spans.append((asked, pages, slice(first, first + asked.rows)))
            first += asked.rows
        return spans


def deal_pages(requests: Sequence[Asked], seed: int) -> list[list[int]]:
    """Return the pages of each request, anywhere in caches of one page more than they need."""
    import torch

    counts = [asked.pages for asked in requests]
    draw = torch.Generator().manual_seed(seed)
    mixed = torch.randperm(sum(counts) + 1, generator=draw).tolist()
    return [mixed[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(len(counts))]


def held_slots(requests: Sequence[Asked], tables: list[list[int]]) -> Tensor:
    """Return the slots of all tokens of ``requests``: page * block + token of the page."""
    import torch

    slots = []
    for asked, pages in zip(requests, tables, strict=True):
        at = torch.arange(asked.tokens)
        slots.append(torch.tensor(pages)[at // BLOCK] * BLOCK + at % BLOCK)
    return torch.cat(slots)


def make_step(
    requests: Sequence[Asked],
    rows: int,
    tables: list[list[int]],
    device: str = "cpu",
    kind: Kind = "sparse",
) -> Step:
    """Return ``requests`` and pads up to ``rows``; ``tables`` may hold more pages and requests."""
    tables = [own[: asked.pages] for asked, own in zip(requests, tables, strict=False)]
    step = Step(tuple(requests), rows, tables, {}, kind)
    step.tensors.update(_numbers(step, device) | _scratch(rows, device, kind))
    return step


def picked(step: Step, rows: Sequence[int]) -> Step:
    """Return these rows as a step with scratch of its own, over the same pages.

    It has no requests: what it leaves is compared, not judged.
    """
    kept = {name: step.tensors[name][list(rows)].contiguous() for name in INPUTS}
    device = str(kept["pages"].device)
    return Step((), len(rows), [], kept | _scratch(len(rows), device, step.kind), step.kind)


def _scratch(rows: int, device: str, kind: Kind) -> dict[str, Tensor]:
    other = {} if kind == "sparse" else dense_scratch(rows, kind, device)
    return scratch(rows, device) | other


def _numbers(step: Step, device: str) -> dict[str, Tensor]:
    """Return what kernels read of a step."""
    import torch

    ids = torch.full((step.rows,), -1, dtype=torch.int32)
    positions, slots = torch.zeros_like(ids), torch.zeros_like(ids)
    widest = max((len(pages) for pages in step.tables), default=1)
    table = torch.zeros(step.rows, widest, dtype=torch.int32)
    for number, (asked, pages, own) in enumerate(step.spans):
        at = torch.arange(asked.context, asked.tokens)
        ids[own], positions[own] = number, at.int()
        slots[own] = (torch.tensor(pages)[at // BLOCK] * BLOCK + at % BLOCK).int()
        table[own, : len(pages)] = torch.tensor(pages, dtype=torch.int32)
    buffers = StepBuffers(step.rows, device, widest)
    buffers.take(ids, positions, slots, table)
    return buffers.tensors
