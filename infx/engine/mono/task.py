"""What a task may touch: declared tiles, weights, caches and sums, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from infx.engine.mono.arithmetic import Vector, vector
from infx.engine.mono.builder import FLOAT
from infx.engine.mono.formats import decode, encode
from infx.engine.mono.shape import Caches
from infx.engine.mono.sums import Sum
from infx.engine.mono.table import Span, Stage, Table
from infx.engine.mono.weights import Weights

__all__ = ["Hooks", "PagedCache", "Scene", "Step", "Task", "TraceError"]


_Made = TypeVar("_Made")


class TraceError(ValueError):
    """A stage touched memory in a way that the table does not declare."""


@dataclass(frozen=True, slots=True)
class Step:
    """The rows of a step: batch ids (-1: a pad), positions, cache slots, each row's pages.

    Rows of one request stand together, and have the same pages.
    """

    batch_ids: tuple[int, ...]
    positions: tuple[int, ...]
    slots: tuple[int, ...]
    pages: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class PagedCache:
    """One layer's cache as bytes, a vector by (slot, kv head); index keys have head 0 only.

    A slot that was never written holds poison.
    """

    caches: Caches
    keys: dict[tuple[int, int], bytes] = field(default_factory=dict)
    values: dict[tuple[int, int], bytes] = field(default_factory=dict)
    index_keys: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def kind(self, region: str) -> str:
        """Return the format of ``region``'s vectors."""
        if region == "index_keys":
            return self.caches.index
        return "fp8-scaled" if self.caches.kv == "fp8" else self.caches.kv


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a test changes or listens to.

    ``poison`` is what memory holds before it is written; ``weight`` hears of each weight tile read;
    ``exchange`` (region, tile, own part) returns all ranks' parts: without it they are equal.
    """

    poison: float = math.nan
    weight: Callable[[str, tuple[int, ...]], None] = lambda region, tile: None
    exchange: Callable[[str, int, Vector[float]], list[Vector[float]]] | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What all tasks of a run share: the table, its inputs, and the tiles written so far.

    ``rows`` are those that are no pads; ``times`` count writes; ``shared`` is what blocks compute
    once for a stage's tasks (each for itself, all the same).
    """

    table: Table
    weights: Weights
    cache: PagedCache
    step: Step
    hooks: Hooks
    rows: tuple[int, ...]
    tiles: dict[tuple[str, tuple[int, ...]], Vector[float]] = field(default_factory=dict)
    times: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    shared: dict[tuple[str, int], Any] = field(default_factory=dict)

    def unwritten(self, region: str) -> Vector[float]:
        """Return a tile of poison."""
        return vector([self.hooks.poison] * (self.table.region(region).tile_bytes // FLOAT))


class Task:
    """One task as its stage's function sees it: indices, declared memory, the table's sums."""

    def __init__(self, scene: Scene, stage: Stage, at: Mapping[str, int]) -> None:
        self._scene, self._stage, self.at = scene, stage, at
        self.table, self.step, self.shape = scene.table, scene.step, scene.table.shape

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows that are no pads."""
        return self._scene.rows

    def sum(self, name: str) -> Sum:
        """Return the sum ``name``, which the stage must declare."""
        if name not in self._stage.sums:
            raise TraceError(f"stage {self._stage.name} uses the sum {name} undeclared")
        return self.table.sum(name)

    def read(self, region: str, *tile: int) -> Vector[float]:
        """Return the numbers of a tile."""
        self._declared(region, tile, reading=True)
        return self._scene.tiles.get((region, tile)) or self._scene.unwritten(region)

    def write(self, region: str, numbers: Sequence[float], *tile: int) -> None:
        """Fill a tile, once."""
        self._declared(region, tile, reading=False)
        written = vector(numbers)
        if len(written) * FLOAT != self.table.region(region).tile_bytes:
            raise TraceError(f"{region}{list(tile)} is given {len(written)} numbers")
        if (region, tile) in self._scene.tiles:
            raise TraceError(f"{region}{list(tile)} is written twice")
        self._scene.tiles[region, tile] = written
        self._scene.times[region, tile] = len(self._scene.times)

    def time(self, region: str, *tile: int) -> int:
        """Return when the tile was written, counted in writes; -1: not at all."""
        return self._scene.times.get((region, tile), -1)

    def once(self, key: int, make: Callable[[], _Made]) -> _Made:
        """Return what ``make`` gave to the first task of the stage that asked for ``key``."""
        place = (self._stage.name, key)
        if place not in self._scene.shared:
            self._scene.shared[place] = make()
        made: _Made = self._scene.shared[place]
        return made

    def weight(self, region: str, *tile: int) -> list[Vector[float]]:
        """Return a tile of weights: for each input the row of outputs."""
        self._declared(region, tile, reading=True)
        self._scene.hooks.weight(region, tile)
        return self._scene.weights.tile(region, tile)

    def exchange(self, region: str, tile: int, own: Vector[float]) -> list[Vector[float]]:
        """Return the parts of all ranks, in rank order."""
        ranks = self.shape.ranks
        parts = self._scene.hooks.exchange
        given = parts(region, tile, own) if parts else [own] * ranks
        for rank, part in enumerate(given):
            self.write(region, part, rank, tile)
        return [self.read(region, rank, tile) for rank in range(ranks)]

    def append(self, region: str, row: int, head: int, numbers: Sequence[float]) -> None:
        """Encode a row's vector into its slot of the cache."""
        self._declared(region, (head,), reading=False)
        cache = self._scene.cache
        kept = getattr(cache, region)
        kept[self.step.slots[row], head] = encode(cache.kind(region), numbers)

    def token(self, region: str, row: int, head: int, position: int) -> Sequence[float]:
        """Return the vector that the cache holds at ``position`` of the row's request."""
        self._declared(region, (head,), reading=True)
        cache, block = self._scene.cache, self.shape.block
        slot = self.step.pages[row][position // block] * block + position % block
        data = getattr(cache, region).get((slot, head))
        if data is None:
            return [self._scene.hooks.poison] * self.shape.head_dim
        return decode(cache.kind(region), data)

    def _declared(self, region: str, tile: tuple[int, ...], reading: bool) -> None:
        accesses = self._stage.reads if reading else self._stage.writes
        for access in accesses:
            if access.region == region and access.applies(self.at):
                spans = zip(access.at, tile, strict=True)
                if all(not isinstance(s, Span) or i in s.tiles(self.at) for s, i in spans):
                    return
        verb = "reads" if reading else "writes"
        raise TraceError(
            f"{self._stage.name}{dict(self.at)} {verb} {region}{list(tile)} undeclared"
        )
