"""The table of a mono layer: regions of memory, stages of tasks, and who waits for whom.

How a machine runs a table (all back ends and the interpreter alike):

* Every block walks the stages in the table's order. Of a stage's live tasks, numbered from 0 in
  ascending order of their indices, block b runs those with (base + t) mod step = b, ascending.
* Before a stage a block waits for the barriers that the stage names, whether or not it has tasks.
  Before a task it waits for the counters that the stage names for that task.
* A stage without a ``group`` is a barrier: each block arrives once, after its last task of the
  stage. With one, each task arrives at the counter of its group.
* Waits look back only, so the block that stands at the earliest stage can always go on: no deadlock
  as long as all blocks are resident.
* Between arriving and waiting a block may fetch the weights that `Table.prefetchable` names: they
  depend on no data of the layer.

A tile is the unit of ownership: it is written by one task. Memory behind tiles is row-major as each
region's docstring in `infx.engine.mono.plan` says; tiles of rows x features are strided views.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from infx.engine.mono.shape import Caches, Formats, Grain, Kind, LayerShape, Machine
from infx.engine.mono.sums import Sum

__all__ = [
    "LIVE",
    "Access",
    "Dealt",
    "Looked",
    "Region",
    "Selector",
    "Space",
    "Span",
    "Stage",
    "Table",
    "Wait",
    "whole",
]

# weight and step are borrowed and read only; cache outlives the step; stream is the pair of
# residual buffers; scratch is one device's; peer is memory that other ranks write; out is given.
Space = Literal["weight", "step", "cache", "stream", "scratch", "peer", "out"]

# Which tasks of a stage exist in a step. Pads (batch id -1) make nothing live.
LIVE = {
    "row": "the axis row: a row that is no pad",
    "leader": "the axis row: the first row of a request, whose task serves all its rows",
    "seen": "the axes partition, chunk: keys that the row (the leader: its request) sees",
    "chosen": "the axis expert: an expert that a live row chose, and the shared one",
}


@dataclass(frozen=True, slots=True)
class Span:
    """Tiles ``first + step i`` and the ``size - 1`` after it, i the task's index on ``axis``.

    Without an axis, the same tiles for every task.
    """

    axis: str = ""
    first: int = 0
    step: int = 1
    size: int = 1

    def tiles(self, at: Mapping[str, int]) -> range:
        """Return the tiles of the task at index ``at``."""
        start = self.first + (self.step * at[self.axis] if self.axis else 0)
        return range(start, start + self.size)


@dataclass(frozen=True, slots=True)
class Dealt:
    """The tiles that data give to the task: those whose ``by`` is the task's index on that axis.

    ``expert``: the (row, slot) pairs that chose it; ``row``: the rows of the leader's request. Each
    tile is dealt to exactly one live task, those of pads to none.
    """

    by: Literal["expert", "row"]


@dataclass(frozen=True, slots=True)
class Looked:
    """A tile that data name: the ``by`` of the task's (row, slot)."""

    by: Literal["expert"]


Selector = Span | Dealt | Looked


def whole(size: int) -> Span:
    """Return all ``size`` tiles of a dimension."""
    return Span(size=size)


@dataclass(frozen=True, slots=True)
class Region:
    """Memory by name. ``tiles`` are its dimensions in tiles, ``tile_bytes`` the bytes of one.

    ``writer`` is the only stage that writes it ("": it comes from outside). ``exchange``: each rank
    pushes to all, so the writer stage reads it too, once all ranks' tiles carry this layer's tag.
    ``offset`` is in bytes from its space's arena (scratch, peer). ``parity`` 0 or 1: the buffer
    (layer + parity) mod 2 of two.
    """

    name: str
    space: Space
    writer: str
    tiles: tuple[int, ...]
    tile_bytes: int
    exchange: bool = False
    offset: int = 0
    parity: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of all tiles (of one buffer)."""
        return math.prod(self.tiles) * self.tile_bytes


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of ``region`` at one selector a dimension.

    ``when`` (axis, first, end): only tasks with that index in the range do it.
    """

    region: str
    at: tuple[Selector, ...]
    when: tuple[str, int, int] | None = None

    def applies(self, at: Mapping[str, int]) -> bool:
        """Return whether the task at index ``at`` does it."""
        return self.when is None or self.when[1] <= at[self.when[0]] < self.when[2]


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for ``count`` arrivals: at the barrier of ``stage``, or each counter ``at`` selects."""

    stage: str
    count: int
    at: Span | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the layer: a grid of tasks over ``axes`` (name, extent).

    ``live`` are keys of `LIVE`. ``base`` and ``step`` place tasks; ``group`` (axis, size): tasks
    arrive at counter index // size. ``sums`` are names; ``shared_bytes`` is what a block needs.
    """

    name: str
    axes: tuple[tuple[str, int], ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    waits: tuple[Wait, ...]
    sums: tuple[str, ...]
    base: int
    step: int
    live: tuple[str, ...] = ()
    group: tuple[str, int] | None = None
    shared_bytes: int = 0

    @property
    def tasks(self) -> int:
        """Tasks if all are live."""
        return math.prod(extent for _, extent in self.axes)

    def extent(self, axis: str) -> int:
        """Return the extent of ``axis``."""
        return dict(self.axes)[axis]

    def indices(self, along: Collection[str] | None = None) -> Iterator[dict[str, int]]:
        """Yield the index of every task, ascending, the last axis fastest; or only of some axes."""
        axes = [axis for axis in self.axes if along is None or axis[0] in along]
        for index in itertools.product(*(range(extent) for _, extent in axes)):
            yield {name: number for (name, _), number in zip(axes, index, strict=True)}

    def mine(self, block: int, live: int) -> range:
        """Return which of ``live`` tasks ``block`` runs: the loop of a kernel."""
        return range((block - self.base) % self.step, live, self.step)

    @property
    def counters(self) -> int:
        """Counters that its arrivals use."""
        return -(-self.extent(self.group[0]) // self.group[1]) if self.group else 1

    def arrivals(self, blocks: int) -> int:
        """Return the arrivals at each counter when the stage is done, of ``blocks`` blocks."""
        if self.group is None:
            return blocks
        axis, size = self.group
        return self.tasks // self.extent(axis) * size


@dataclass(frozen=True, slots=True)
class Table:
    """A decode layer of ``width`` rows; ``tapped``: its output is an auxiliary state as well."""

    shape: LayerShape
    kind: Kind
    width: int
    caches: Caches
    formats: Formats
    machine: Machine
    grain: Grain
    tapped: bool
    regions: tuple[Region, ...]
    stages: tuple[Stage, ...]
    sums: tuple[Sum, ...]

    def region(self, name: str) -> Region:
        """Return the region ``name``. Raises KeyError."""
        return _named(self.regions, name)

    def stage(self, name: str) -> Stage:
        """Return the stage ``name``. Raises KeyError."""
        return _named(self.stages, name)

    def has(self, stage: str) -> bool:
        """Return whether there is a stage of that name."""
        return any(other.name == stage for other in self.stages)

    def sum(self, name: str) -> Sum:
        """Return the sum ``name``. Raises KeyError."""
        return _named(self.sums, name)

    def arena(self, space: Space) -> int:
        """Return the bytes that regions of ``space`` need, both buffers where there are two."""
        ends = [
            region.offset + region.bytes * (1 if region.parity is None else 2)
            for region in self.regions
            if region.space == space
        ]
        return max(ends, default=0)

    def prefetchable(self, stage: str) -> tuple[Access, ...]:
        """Return the reads of weights that may be issued before the stage's waits are over."""
        if "chosen" in self.stage(stage).live:
            return ()
        return tuple(
            read
            for read in self.stage(stage).reads
            if self.region(read.region).space == "weight"
            and all(isinstance(selector, Span) for selector in read.at)
        )


_Named = TypeVar("_Named", Region, Stage, Sum)


def _named(parts: tuple[_Named, ...], name: str) -> _Named:
    for part in parts:
        if part.name == name:
            return part
    raise KeyError(name)
