"""The numba back end of the library: layers over weights and caches that a host owns."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.cache import KvCache
from infx.engine.mono.cpu.calls import CacheAddresses, LayerCall, Memory, Rows, rotary
from infx.engine.mono.cpu.compiled import Build, cpu_key, load
from infx.engine.mono.cpu.compiling import compile_builds
from infx.engine.mono.cpu.kinds import kinds_of, layer_shape
from infx.engine.mono.cpu.pack import LINE_BYTES, Floats, packed
from infx.engine.mono.cpu.source import weight_offsets
from infx.engine.mono.plan import make_table
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import CPU_GRAIN, MOST_ROWS, Caches, Kind, cpu
from infx.engine.mono.step import StepRows
from infx.engine.mono.table import Table
from infx.engine.shapes import ModelConfig

__all__ = ["WIDTHS", "CpuBackEnd", "packed_layers"]

# One build a kind: at one row it costs what a build of one row does (docs/mono.md).
WIDTHS = (MOST_ROWS,)


def packed_layers(model: ModelConfig, weights: Mapping[str, Any]) -> list[Floats]:
    """Return each layer's weights as kernels read them, from infx's names (``layers.0.qkv``, …).

    A loader keeps these instead of the tensors. Raises ValueError for a model that mono does not
    do.
    """
    shape, kinds = layer_shape(model), kinds_of(model)
    tables = {kind: make_table(shape, kind, 1, cpu(1), CPU_GRAIN) for kind in set(kinds)}
    layers = []
    for number, kind in enumerate(kinds):
        prefix = f"layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        layers.append(packed(tables[kind], own))
    return layers


class CpuBackEnd:
    """A `BackEnd` over ``layers`` (`packed_layers`) and ``cache``, both borrowed and never copied.

    Runs unfused layers as well. Streams are float32 [n, hidden], C-contiguous, n the prepared rows;
    ``stream_out`` may be ``stream_in``. One thread at a time: all layers share scratch. Raises
    ValueError for a model that mono does not do.
    """

    def __init__(
        self,
        model: ModelConfig,
        layers: Sequence[Floats],
        cache: KvCache,
        folder: Path | None = None,
    ) -> None:
        self.shape, self.kinds = layer_shape(model), kinds_of(model)
        self._weights, self._folder = list(layers), folder
        self._caches = Caches(cache.kinds.kv, cache.kinds.index)
        self._block, self._slots = cache.block, cache.slots
        self._parts = [_parts(cache, number) for number in range(len(self.kinds))]
        self._turns = rotary(self.shape)
        self._rows: dict[int, Rows] = {}
        self._calls: dict[int, list[LayerCall]] = {}
        self._builds: dict[int, list[Build]] = {}
        self._width = 0

    def refuse(self) -> Refusal | None:
        """Return what is wrong with the borrowed weights or cache, or None."""
        return next(self._faults(), None)

    def build(self, width: int) -> Refusal | None:
        """Compile each kind of layer for ``width`` rows, or take it from disk, unless it is here.

        Refuses what `refuse` does: kernels know no bounds. Raises InfraError (builds-unwritable).
        """
        if width in self._builds:
            return None
        if refusal := self.refuse():
            return refusal
        builds = {
            kind: load(cpu_key(self.shape, kind, width, self._caches), self._folder)
            for kind in sorted(set(self.kinds))
        }
        compile_builds(list(builds.values()), sys.stderr)
        self._attach(width, builds)
        return None

    def prepare(self, step: StepRows, width: int) -> None:
        """Take a step for the build of ``width``, for either arm.

        Raises ValueError, having changed nothing, for a row outside the cache or the build.
        """
        self._rows[width].take(step.batch_ids, step.positions, step.slots, step.pages)  # type: ignore[arg-type]
        self._width = width

    def run(self, layer: int, stream_in: Floats, stream_out: Floats) -> None:
        """Write what ``layer`` makes of the prepared rows' stream, as one call; fill the cache."""
        build = self._builds[self._width][layer]
        build.run(self._calls[self._width][layer].point(stream_in, stream_out), *build.mono)

    def run_unfused(self, layer: int, stream_in: Floats, stream_out: Floats) -> None:
        """Do as `run`, by a call a stage: the baseline, and what mono is checked with."""
        build = self._builds[self._width][layer]
        address = self._calls[self._width][layer].point(stream_in, stream_out)
        for first, end in build.unfused:
            build.run(address, first, end)

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the expert ids [n, topk] that the step's rows chose in ``layer``; -1: a pad's."""
        rows, routing = self._rows[self._width].count, self._calls[self._width][layer].routing
        return routing[:rows, 0].astype(np.int64)

    def fill_scratch(self, byte: int) -> None:
        """Fill with ``byte`` all memory that stages leave to each other."""
        for call in itertools.chain(*self._calls.values()):
            call.fill_scratch(byte)

    def close(self) -> None:
        """Let go of weights and cache."""
        for held in (self._calls, self._builds, self._rows, self._weights, self._parts):
            held.clear()

    def _attach(self, width: int, builds: Mapping[Kind, Build]) -> None:
        """Set up the calls of all layers at ``width``: one scratch a kind, one step for all."""
        rows = Rows(next(iter(builds.values())).table, self._turns, self._slots)
        memories = {kind: Memory(build.table) for kind, build in builds.items()}
        self._rows[width] = rows
        self._calls[width] = [
            LayerCall(
                builds[kind].table, rows, memories[kind], self._weights[number],
                CacheAddresses.of(*self._parts[number]),
            )
            for number, kind in enumerate(self.kinds)
        ]  # fmt: skip
        self._builds[width] = [builds[kind] for kind in self.kinds]

    def _faults(self) -> Iterator[Refusal]:
        if len(self._weights) != len(self.kinds):
            found, wanted = len(self._weights), len(self.kinds)
            yield Refusal("mono-layer-count", f"{found} layers of weights: expected {wanted}")
            return
        if self._block != self.shape.block:
            yield Refusal(
                "mono-cache",
                f"the cache has pages of {self._block} tokens: expected {self.shape.block}",
            )
        tables = {
            kind: make_table(self.shape, kind, 1, cpu(1), CPU_GRAIN, self._caches)
            for kind in set(self.kinds)
        }
        for number, kind in enumerate(self.kinds):
            yield from _weight_faults(number, self._weights[number], tables[kind])
            yield from self._cache_faults(number, kind)

    def _cache_faults(self, number: int, kind: Kind) -> Iterator[Refusal]:
        kv, index = self._caches.token_bytes(self.shape.head_dim)
        wanted = (2 * self.shape.kv_heads * kv, 0 if kind == "dense" else index)
        found = tuple(sum(part.nbytes for part in parts) for parts in self._parts[number])
        if found != tuple(size * self._slots for size in wanted):
            yield Refusal(
                "mono-cache",
                f"the cache of layer {number} has {found} bytes of keys and values, and of index"
                f" keys, for {self._slots} tokens: expected {wanted} a token",
            )
        for part in itertools.chain(*self._parts[number]):
            if part.device.type != "cpu":
                yield Refusal(
                    "mono-residency",
                    f"the cache of layer {number} lies on {part.device}: expected cpu",
                )
            if not part.is_contiguous():
                yield Refusal(
                    "mono-strides",
                    f"the cache of layer {number} has strides {part.stride()}: expected contiguous",
                )


def _parts(cache: KvCache, number: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the tensors of a layer, none where the cache has no such layer."""
    try:
        return cache.layer_parts(number)
    except IndexError:
        return (), ()


def _weight_faults(number: int, weights: Any, table: Table) -> Iterator[Refusal]:
    if not isinstance(weights, np.ndarray):
        what = f"weights of layer {number} are a {type(weights).__name__}"
        yield Refusal("mono-residency", f"{what}: expected an array in the host's memory")
        return
    size = weight_offsets(table)[""]
    if weights.dtype != np.float32 or weights.size != size:
        yield Refusal(
            "mono-weights",
            f"weights of layer {number} are {weights.size} {weights.dtype}: expected {size}"
            " float32, as pack.packed returns",
        )
    if not weights.flags.c_contiguous or weights.ndim != 1:
        yield Refusal(
            "mono-strides",
            f"weights of layer {number} are {weights.shape} with strides of {weights.strides}"
            " bytes: expected one dimension, contiguous",
        )
    if weights.ctypes.data % LINE_BYTES:
        yield Refusal(
            "mono-alignment",
            f"weights of layer {number} begin at {weights.ctypes.data:#x}: expected a multiple of"
            f" {LINE_BYTES} bytes",
        )
