"""Putting a table together: tiles that divide what is there, offsets, wait counts, placement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from infx.engine.mono.shape import Caches, Formats, Grain, Kind, LayerShape, Machine
from infx.engine.mono.sums import Sum
from infx.engine.mono.table import Access, Region, Selector, Space, Span, Stage, Wait, whole

__all__ = ["ALIGNMENT", "FLOAT", "Builder", "Tiles", "at"]

FLOAT = 4
# A line of H200's L2 is 128 bytes; 256 keeps two regions out of one sector pair as well.
ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Tiles:
    """Sizes of tiles: the grain's, rounded down to divisors of the shape. No width in it."""

    shape: LayerShape
    grain: Grain

    @property
    def out(self) -> int:
        """Hidden features of a tile of the residual stream."""
        return _divisor(self.shape.hidden, self.grain.out_tile)

    @property
    def hidden(self) -> int:
        """Tiles of the residual stream."""
        return self.shape.hidden // self.out

    @property
    def qkv(self) -> int:
        """Features of a tile of the fused projection; a head is whole tiles."""
        return _divisor(self.shape.head_dim, self.grain.qkv_tile)

    @property
    def qkv_parts(self) -> int:
        """Parts of K of the fused projection, each of whole tiles of the stream."""
        return _divisor(self.hidden, self.grain.qkv_parts)

    @property
    def router_parts(self) -> int:
        """Parts of K of the router, each of whole tiles of the stream."""
        return _divisor(self.hidden, self.grain.router_parts)

    @property
    def router(self) -> int:
        """Experts of a tile of the router."""
        return _divisor(self.shape.experts, self.grain.router_tile)

    @property
    def up(self) -> int:
        """Gate and up pairs of a tile of an expert."""
        return _divisor(self.shape.expert_size, self.grain.up_tile)

    @property
    def dense(self) -> int:
        """Gate and up pairs of a tile of the dense MLP."""
        return _divisor(self.shape.dense_size, self.grain.dense_tile)

    @property
    def chunks(self) -> int:
        """Tiles of pages of the longest context."""
        return -(-self.shape.pages // self.grain.score_tile)

    def partitions(self, sparse: bool) -> int:
        """Partial softmaxes of a row: of its chosen blocks, or of the longest context."""
        keys = self.shape.topk_blocks * self.shape.block if sparse else self.shape.reach
        return -(-min(keys, self.shape.pages * self.shape.block) // self.shape.partition)


def _divisor(number: int, at_most: int) -> int:
    return next(size for size in range(min(number, at_most), 0, -1) if number % size == 0)


def at(
    region: str, *selectors: Selector | int | str, when: tuple[str, int, int] | None = None
) -> Access:
    """Return an access: an int selects that many tiles from 0, a string the tile of that axis."""
    spans = (
        Span(axis=s) if isinstance(s, str) else whole(s) if isinstance(s, int) else s
        for s in selectors
    )
    return Access(region, tuple(spans), when)


@dataclass(slots=True)
class Builder:
    """A table that grows stage by stage: counts, offsets and bases follow from what is there."""

    shape: LayerShape
    kind: Kind
    width: int
    caches: Caches
    formats: Formats
    machine: Machine
    grain: Grain
    regions: list[Region] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    sums: dict[str, Sum] = field(default_factory=dict)
    _ends: dict[Space, int] = field(default_factory=dict)
    _base: int = 0

    @property
    def tiles(self) -> Tiles:
        """Sizes of tiles."""
        return Tiles(self.shape, self.grain)

    @property
    def sparse(self) -> bool:
        """Whether the layer attends to chosen blocks only."""
        return self.kind != "dense"

    def region(
        self,
        name: str,
        space: Space,
        tiles: tuple[int, ...],
        tile_bytes: int,
        writer: str = "",
        parity: int | None = None,
    ) -> None:
        """Declare a region; scratch and peer memory is laid out in order of declaration."""
        exchange = space == "peer"
        region = Region(name, space, writer, tiles, tile_bytes, exchange, 0, parity)
        if space in ("scratch", "peer"):
            offset = self._ends.get(space, 0)
            size = region.bytes * (1 if parity is None else 2)
            self._ends[space] = offset + -(-size // ALIGNMENT) * ALIGNMENT
            region = Region(name, space, writer, tiles, tile_bytes, exchange, offset, parity)
        self.regions.append(region)

    def sum(
        self, name: str, extent: int, chunk: int = 1, lanes: int = 1, merged: str = "lane"
    ) -> str:
        """Declare a sum dealt by its chunks alone; return its name."""
        self.sums[name] = Sum(name, extent, chunk, lanes, merged_by=merged)
        return name

    def matrix(self, name: str, inputs: int, lanes: int | None = None) -> str:
        """Declare the sum over the inputs of a matrix."""
        return self.sum(name, inputs, self.grain.chunk, lanes or self.grain.lanes)

    def stage(
        self,
        name: str,
        axes: Iterable[tuple[str, int]],
        *,
        reads: Iterable[Access],
        writes: Iterable[Access],
        after: Iterable[str | tuple[str, Span]] = (),
        sums: Iterable[str] = (),
        live: tuple[str, ...] = (),
        group: tuple[str, int] | None = None,
        shared_bytes: int = 0,
    ) -> None:
        """Append a stage that waits for those named in ``after`` (some counters of it, or all)."""
        stage = Stage(
            name=name,
            axes=tuple(axes),
            reads=tuple(reads),
            writes=tuple(writes),
            waits=tuple(self._wait(other) for other in after),
            sums=tuple(sums),
            base=self._base,
            step=self.machine.blocks,
            live=live,
            group=group,
            shared_bytes=shared_bytes,
        )
        self.stages.append(stage)
        # The next stage begins on the blocks that this one leaves idle in its last round.
        self._base = (self._base + stage.tasks) % self.machine.blocks

    def _wait(self, other: str | tuple[str, Span]) -> Wait:
        name, selected = other if isinstance(other, tuple) else (other, None)
        stage = next(stage for stage in self.stages if stage.name == name)
        count = stage.arrivals(self.machine.blocks)
        return Wait(name, count, selected)
