"""What one forward pass computes: rows, and which requests they belong to.

A row is one token at one position of one request. Rows of a request stand together; *spans* of
equally many rows stand together in a *group*, so that attention works on rectangles
[spans, rows a span] and never on ragged lists. Prefill chunks, verify rows and draft rows are all
rows: causality follows from the position alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PAD", "Batch", "Group", "Span", "make_batch"]

PAD = -1


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive rows of one request: ``tokens`` from position ``start``, over ``pages``.

    ``dead`` rows at its end fill a rectangle: they are computed and touch nothing.
    """

    tokens: Sequence[int]
    start: int
    pages: Sequence[int]
    dead: int = 0

    @property
    def rows(self) -> int:
        """Rows in the rectangle."""
        return len(self.tokens) + self.dead


@dataclass(frozen=True, slots=True)
class Group:
    """A rectangle of rows: ``spans`` x ``rows`` rows from row ``first``, table rows ``table``."""

    first: int
    spans: int
    rows: int
    table: Tensor

    @property
    def slice(self) -> slice:
        """The group's rows in the batch."""
        return slice(self.first, self.first + self.spans * self.rows)


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one pass over R rows.

    ``tokens``, ``positions``, ``batch_ids`` [R] (batch id -1: a pad, which writes no cache, reads
    no expert and no key); ``live`` [n] the other rows, ``slots`` [n] their cache slots
    (page x block size + offset); ``previous`` [R] the slot of the position before, for the draft.
    ``firsts`` is the first row of each span.
    """

    tokens: Tensor
    positions: Tensor
    batch_ids: Tensor
    live: Tensor
    slots: Tensor
    previous: Tensor
    groups: tuple[Group, ...]
    firsts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows computed, pads included."""
        return len(self.tokens)

    @property
    def grouped(self) -> int:
        """Rows that stand in groups; the pads of the batch come after them."""
        last = self.groups[-1]
        return last.first + last.spans * last.rows


def make_batch(spans: Sequence[Span], block: int, width: int = 0) -> Batch:
    """Return the batch of ``spans``, padded to ``width`` rows; ``block`` is tokens a page.

    Neighbouring spans of equally many rows form one group: sort the spans for fewer groups.
    """
    tokens: list[int] = []
    positions: list[int] = []
    ids: list[int] = []
    slots: list[int] = []
    previous: list[int] = []
    firsts: list[int] = []
    for number, span in enumerate(spans):
        firsts.append(len(tokens))
        count = len(span.tokens)
        at = range(span.start, span.start + count)
        tokens += [*span.tokens, *[0] * span.dead]
        positions += [*at, *[0] * span.dead]
        ids += [number] * count + [PAD] * span.dead
        slots += [span.pages[p // block] * block + p % block for p in at]
        before = (max(p - 1, 0) for p in at)
        previous += [span.pages[p // block] * block + p % block for p in before] + [0] * span.dead
    pads = max(width - len(tokens), 0)
    batch_ids = torch.tensor(ids + [PAD] * pads, dtype=torch.int32)
    return Batch(
        tokens=torch.tensor(tokens + [0] * pads),
        positions=torch.tensor(positions + [0] * pads),
        batch_ids=batch_ids,
        live=(batch_ids >= 0).nonzero()[:, 0],
        slots=torch.tensor(slots, dtype=torch.int64),
        previous=torch.tensor(previous + [0] * pads),
        groups=tuple(_groups(spans, block)),
        firsts=tuple(firsts),
    )


def _groups(spans: Sequence[Span], block: int) -> list[Group]:
    groups, first = [], 0
    for rows, members in itertools.groupby(spans, key=lambda span: span.rows):
        chosen = list(members)
        groups.append(Group(first, len(chosen), rows, _table(chosen, block)))
        first += rows * len(chosen)
    return groups


def _table(spans: Sequence[Span], block: int) -> Tensor:
    """Return page numbers [spans, pages that the longest span reaches]; unused entries are 0."""
    reach = max((span.start + len(span.tokens) + block - 1) // block for span in spans)
    return torch.tensor([[*span.pages[:reach], *[0] * (reach - len(span.pages))] for span in spans])
