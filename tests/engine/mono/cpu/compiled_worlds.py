"""The interpreter's worlds, run by the compiled layers: the same rows, caches and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from infx.engine.mono.cpu.calls import CacheAddresses, LayerCall, Memory, Rows, address_of
from infx.engine.mono.cpu.compiled import Build, cpu_key, load
from infx.engine.mono.cpu.pack import packed
from infx.engine.mono.task import PagedCache
from tests.engine.mono.tiny_layers import Row, World

NOTHING = np.zeros(1, dtype=np.float32)
PARTS = {"fp32": np.float32, "bf16": np.uint16, "fp8": np.uint8, "mxfp4": np.uint8}


@dataclass
class LayerCache:
    """A layer's cache: keys' vectors [page, kv head, token], values' behind them; index by slot."""

    kv: np.ndarray[Any, Any]
    kv_scale: np.ndarray[Any, Any]
    index: np.ndarray[Any, Any]
    index_scale: np.ndarray[Any, Any]

    @property
    def addresses(self) -> CacheAddresses:
        kv, scale = address_of(self.kv), address_of(self.kv_scale)
        index, index_scale = address_of(self.index), address_of(self.index_scale)
        half, half_scale = self.kv.nbytes // 2, self.kv_scale.nbytes // 2
        return CacheAddresses(kv, scale, kv + half, scale + half_scale, index, index_scale)


@dataclass
class Compiled:
    """A result: the stream and the routing by row, and the cache's arrays."""

    stream: np.ndarray[Any, Any]
    routing: np.ndarray[Any, Any]
    cache: LayerCache


class CompiledWorld:
    """A `World` whose layer is compiled, for a table of ``width`` rows."""

    def __init__(self, world: World, width: int, folder: Path) -> None:
        self.world = world
        key = cpu_key(world.shape, world.kind, width, world.caches, world.grain)
        self.build: Build = load(key, folder)
        self.weights = packed(self.build.table, world.layer)

    def run(
        self,
        rows: Sequence[Row],
        arm: str = "mono",
        poison: float = float("nan"),
        cache: LayerCache | None = None,
        in_place: bool = False,
    ) -> Compiled:
        """Return what ``rows`` become; scratch, pages and pads hold ``poison``."""
        table, shape = self.build.table, self.world.shape
        positions = np.array([row.position for row in rows], dtype=np.int64)
        slots = self.world.requests * shape.pages * shape.block
        step = Rows(table, turns(shape), slots)
        pages = np.zeros((len(rows), shape.pages), dtype=np.int32)
        for i, row in enumerate(rows):
            pages[i, : len(row.pages)] = row.pages
        step.take(
            np.array([row.request for row in rows], dtype=np.int32),
            positions,
            np.array([row.slot for row in rows], dtype=np.int64),
            pages,
        )
        stream = np.array([list(row.stream) for row in rows], dtype=np.float32)
        out = stream if in_place else np.full_like(stream, poison)
        cache = cache or arrays_of(self.world, self.world.cache(), poison)
        memory, own = Memory(table, poison), self.weights
        call = LayerCall(table, step, memory, own, cache.addresses)
        for stages in (self.build.mono,) if arm == "mono" else self.build.unfused:
            self.build.run(call.point(stream, out), *stages)
        return Compiled(out, call.routing[: len(rows)].copy(), cache)


def turns(shape: Any) -> np.ndarray[Any, Any]:
    """Return cos and sin of each position, as the interpreter computes them."""
    import math

    half = shape.rotary_dim // 2
    angles = [
        [p * shape.rope_theta ** -(2 * i / shape.rotary_dim) for i in range(half)]
        for p in range(shape.reach)
    ]
    made = [[*map(math.cos, line), *map(math.sin, line)] for line in angles]
    return np.array(made, dtype=np.float32)


def arrays_of(world: World, cache: PagedCache, poison: float) -> LayerCache:
    """Return the arrays that hold what ``cache`` holds, the rest filled with bytes of 0xFF: NaN."""
    shape, pages = world.shape, world.requests * world.shape.pages
    kv = _parts(world.caches.kv, 2 * pages * shape.kv_heads * shape.block, shape.head_dim, True)
    index = _parts(world.caches.index, pages * shape.block, shape.head_dim, False)
    half = pages * shape.kv_heads * shape.block
    for first, kept in ((0, cache.keys), (half, cache.values)):
        for (slot, head), data in kept.items():
            _put(kv, first + place(shape, slot, head), data)
    for (slot, _), data in cache.index_keys.items():
        _put(index, slot, data)
    if world.kind == "dense":
        index = (NOTHING, NOTHING)
    return LayerCache(*(part.reshape(-1) for part in (*kv, *index)))


def place(shape: Any, slot: int, head: int) -> int:
    """Return the number of the vector that a head has in a slot."""
    page, offset = divmod(slot, shape.block)
    return (page * shape.kv_heads + head) * shape.block + offset


def vector_bytes(world: World, cache: LayerCache, region: str, slot: int, head: int) -> bytes:
    """Return the bytes of a vector as the interpreter keeps them."""
    shape, at = world.shape, place(world.shape, slot, head)
    data, scale = cache.kv, cache.kv_scale
    if region == "index_keys":
        data, scale, at = cache.index, cache.index_scale, slot
    if region == "values":
        at += world.requests * shape.pages * shape.kv_heads * shape.block
    kind = world.caches.index if region == "index_keys" else world.caches.kv
    size = shape.head_dim // (2 if kind == "mxfp4" else 1)
    groups = {"mxfp4": shape.head_dim // 32, "fp8": 1 if region != "index_keys" else 0}.get(kind, 0)
    return (
        data[at * size : (at + 1) * size].tobytes()
        + scale[at * groups : (at + 1) * groups].tobytes()
    )


def _parts(kind: str, vectors: int, dim: int, scaled: bool) -> tuple[Any, Any]:
    size = dim // 2 if kind == "mxfp4" else dim
    data = np.full((vectors, size * np.dtype(PARTS[kind]).itemsize), 0xFF, dtype=np.uint8)
    scale: Any = NOTHING
    if kind == "mxfp4":
        scale = np.full((vectors, dim // 32), 0xFF, dtype=np.uint8)
    if kind == "fp8" and scaled:
        scale = np.full((vectors, 1), np.nan, dtype=np.float32)
    return data.view(PARTS[kind]), scale


def _put(parts: tuple[Any, Any], at: int, data: bytes) -> None:
    whole, scale = parts
    size = whole.shape[1] * whole.itemsize
    whole[at] = np.frombuffer(data[:size], dtype=whole.dtype)
    if len(data) > size:
        scale[at] = np.frombuffer(data[size:], dtype=scale.dtype)
