"""A model's layers as a host holds them: weights, a cache, one arm that runs."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.config import EngineConfig
from infx.engine.mono.cpu.kinds import kinds_of, layer_shape
from infx.engine.mono.probe.arms import Hosted, Reference, step_rows
from infx.engine.mono.probe.layer_bytes import LayerBytes
from infx.engine.mono.probe.rows import NAN, Arm, Filling, Left, Ran, Row
from infx.engine.mono.probe.world import World
from infx.engine.mono.shape import Kind, LayerShape
from infx.engine.shapes import ModelConfig
from infx.engine.weights import target_weights

__all__ = ["Host", "Trap", "host_of", "make_host"]

# A float32 NaN that signals: the processor raises its invalid flag as soon as it computes with it.
SIGNALLING_NAN = 0x7FA00000
FE_INVALID = 1
Bytes = npt.NDArray[np.uint8]
VECTORS = ("keys", "values", "index_keys")


def make_host(config: EngineConfig, arm: Arm) -> Host:
    """Return the layers of the model that ``config`` names, loaded and compiled."""
    weights = target_weights(config.shape, config.weights, config.expert_dtype)
    return host_of(config.shape, weights, config.cache_kinds, arm)


def host_of(model: ModelConfig, weights: Mapping[str, Any], kinds: Kinds, arm: Arm) -> Host:
    """Return the layers of ``model`` with ``weights`` on this machine's processor."""
    # Here: a host of another device has no use for what compiles these.
    from infx.engine.mono.probe.compiled_arms import Compiled

    shape = layer_shape(model)
    cache = KvCache.empty(model, World(shape, 0).pages, kinds=kinds)
    make = Reference if arm == "reference" else Compiled
    return Host(arm, shape, kinds_of(model), make(model, weights, cache), cache)


class Host:
    """A `Subject`: layers over ``cache``, run by one of the arms of ``hosted``.

    What is read of spoiled weights is heard where this processor computes, not elsewhere.
    """

    def __init__(
        self, arm: Arm, shape: LayerShape, kinds: Sequence[Kind], hosted: Hosted, cache: KvCache
    ) -> None:
        self.name, self.shape, self.kinds = arm, shape, kinds
        self._cache, self._arm, self._run = cache, hosted, hosted.running(arm)
        self._layers = [LayerBytes(self._cache, layer) for layer in range(len(self.kinds))]
        self._nothing = 0
        self._trap = Trap() if cache.device.type == "cpu" else None

    def fill(self, filling: Filling, nothing: int) -> None:
        """Make every layer's cache hold ``filling``; all else, scratch too, is ``nothing``."""
        self._nothing = nothing
        slots, vectors = filling.history()
        given = (slots, *(vectors[name] for name in VECTORS))
        at, keys, values, index = (torch.from_numpy(x).to(self._cache.device) for x in given)
        for number, layer in enumerate(self._layers):
            layer.fill(nothing)
            self._cache.write(number, at, keys, values)
            if self.kinds[number] != "dense":
                self._cache.write_index(number, at, index)
            layer.keep()

    def run(self, layer: int, *steps: Sequence[Row], spoiled: Collection[int] = ()) -> list[Ran]:
        """Return what ``steps`` leave; see `Subject`."""
        with _spoiled(self._arm.experts(layer, spoiled) if spoiled else []):
            ran = [self._step(layer, rows) for rows in steps]
        slots = {row.slot(self.shape.block) for rows in steps for row in rows if row.live}
        stray = not self._layers[layer].restore(slots)
        return [Ran(rows, stray, read) for rows, read in ran]

    def _step(self, layer: int, rows: Sequence[Row]) -> tuple[tuple[Left, ...], bool | None]:
        stream = np.stack([row.stream for row in rows])
        out = np.full((len(rows), 4 * self.shape.hidden), self._nothing, dtype=np.uint8)
        self._arm.fill_scratch(self._nothing)
        self._arm.prepare(step_rows(rows, self.shape.block))
        if self._trap:
            self._trap.set()
        self._run(layer, stream, out.view(np.float32))
        read = self._trap.sprung if self._trap else None
        routing = self._routing(layer, len(rows))
        return tuple(
            self._left(layer, row, line, experts)
            for row, line, experts in zip(rows, out, routing, strict=True)
        ), read

    def _routing(self, layer: int, rows: int) -> list[tuple[int, ...]]:
        if self.kinds[layer] != "sparse":
            return [()] * rows
        return [tuple(line) for line in self._arm.routing(layer).tolist()]

    def _left(
        self, layer: int, row: Row, out: npt.NDArray[np.uint8], experts: tuple[int, ...]
    ) -> Left:
        kept = (b"", b"")
        if row.live:
            kept = self._layers[layer].vectors(row.slot(self.shape.block))
        return Left(out.tobytes(), *kept, experts)


class Trap:
    """Whether this thread computed with a signalling NaN since it was set."""

    def __init__(self) -> None:
        library = ctypes.CDLL(ctypes.util.find_library("m"))
        self._clear, self._test = library.feclearexcept, library.fetestexcept

    def set(self) -> None:
        """Clear the processor's flag."""
        self._clear(FE_INVALID)

    @property
    def sprung(self) -> bool:
        """Whether the flag is raised."""
        return bool(self._test(FE_INVALID))


@contextmanager
def _spoiled(weights: Sequence[Tensor]) -> Iterator[None]:
    """Make ``weights`` NaN; bytes are a packed format's: all bits set make no finite number."""
    kept = [part.clone() for part in weights]
    for part in weights:
        if part.dtype == torch.uint8:
            part.fill_(NAN)
        else:
            part.view(torch.int32).fill_(SIGNALLING_NAN)
    try:
        yield
    finally:
        for part, was in zip(weights, kept, strict=True):
            part.copy_(was)
