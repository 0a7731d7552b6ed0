"""The CUDA back end of the library: sparse layers over weights and caches that a host owns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cpu.kinds import kinds_of, layer_shape
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.borrowed import cache_faults, cache_fields, weight_faults
from infx.engine.mono.cuda.compiling import are_kept, compile_all
from infx.engine.mono.cuda.device import cuda_refusal
from infx.engine.mono.cuda.gave_up import GiveUpRecord
from infx.engine.mono.cuda.pack import field_sizes
from infx.engine.mono.cuda.scratch import SHAPE, rotary_table, scratch_bytes
from infx.engine.mono.cuda.setting import KINDS
from infx.engine.mono.cuda.step_numbers import check_numbers
from infx.engine.mono.cuda.width import WidthBuild
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import MOST_ROWS, LayerShape
from infx.engine.mono.step import Bounds, StepRows
from infx.engine.shapes import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.cache import KvCache

__all__ = ["WIDTHS", "CudaBackEnd", "built_shape"]

# A build of its own for the widths that graphs are captured at: what is left of a width are pads.
WIDTHS = (1, 2, 4, 8, MOST_ROWS)
DEVICE = "cuda"


def built_shape(model: ModelConfig) -> LayerShape:
    """Return the shape of the model's layers, as far as the kernels reach.

    Raises ValueError for one that mono does not do.
    """
    shape = layer_shape(model)
    return replace(shape, reach=min(shape.reach, SHAPE.reach))


class CudaBackEnd:
    """A `BackEnd` over ``layers`` (`pack.packed_layer`) and ``cache``, borrowed and never copied.

    ``layers`` has nothing for a layer that is not sparse: it stays the host's. Runs unfused layers
    as well, also where `refuse` says that the GPU is not mono's alone: they wait for no other
    block. Streams are float32 tensors [n, hidden] on the cache's device, contiguous, n the
    prepared rows; ``stream_out`` may be ``stream_in``. The current device is the cache's; work goes
    to torch's current stream, and once a width is built all of it may be captured. One thread and
    one stream at a time: all layers share scratch. Raises ValueError for a model that mono does
    not do.
    """

    def __init__(
        self,
        model: ModelConfig,
        layers: Sequence[Mapping[str, Tensor]],
        cache: KvCache,
        folder: Path | None = None,
    ) -> None:
        self.shape, self.kinds = built_shape(model), kinds_of(model)
        self.device, self._number = str(cache.device), cache.device.index or 0
        self._layers, self._folder = list(layers), folder
        self._cache: KvCache | None = cache
        self._cache_kinds = cache.kinds
        self._bounds = Bounds(self.shape.reach, self.shape.block, cache.slots)
        self._record: GiveUpRecord | None = None
        self._builds: dict[int, WidthBuild] = {}
        self._width = 0

    def refuse(self) -> Refusal | None:
        """Return what is wrong with the machine, or with the borrowed weights or cache, or None."""
        return _refuse_shape(self.shape) or self._refuse_machine() or next(self._faults(), None)

    def compile(self, widths: Sequence[int]) -> None:
        """Compile for all of ``widths`` at once what is not on disk: `build` then only loads.

        Raises InfraError (``mono-build-failed``, ``builds-unwritable``).
        """
        compile_all((s for width in widths for s in self._arms(width).sources), self._folder)

    def build(self, width: int) -> Refusal | None:
        """Compile both arms for ``width`` rows, or take them from disk, unless they are here.

        Refuses what `refuse` does of what is borrowed: kernels know no bounds. Raises InfraError as
        `compile`, or ``mono-bind-failed`` with the driver's words.
        """
        if width in self._builds:
            return None
        if refusal := _refuse_shape(self.shape) or next(self._faults(), None):
            return refusal
        self.compile([width])
        arms = self._arms(width)
        arms.load()
        self._record = self._record or GiveUpRecord(self.device)
        rotary_table(self.device)
        self._builds[width] = WidthBuild(arms, self._fields(), self._record, self.device)
        return None

    def prepare(self, step: StepRows, width: int) -> None:
        """Take a step for the build of ``width``, for either arm; allocates nothing on the device.

        Raises ValueError, having changed nothing, for a row outside the cache or the build (where
        the host vouches by ``step.last``, for that alone); InfraError (``kernel-gave-up``) where a
        kernel of an earlier step waited in vain.
        """
        check_numbers(step, self._bounds)
        assert self._record is not None  # a width is built before it is prepared
        self._record.check()
        self._builds[width].take(step)
        self._record.watch()
        self._width = width

    def run(self, layer: int, stream_in: Tensor, stream_out: Tensor) -> None:
        """Write what ``layer`` makes of the prepared rows' stream, as one kernel; fill caches."""
        self._builds[self._width].mono(layer, stream_in, stream_out)

    def run_unfused(self, layer: int, stream_in: Tensor, stream_out: Tensor) -> None:
        """Do as `run`, by a kernel a stage: the baseline, and what mono is checked with."""
        self._builds[self._width].unfused(layer, stream_in, stream_out)

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the expert ids [n, topk] that the step's rows chose in ``layer``; -1: a pad's.

        Waits for the device.
        """
        return self._builds[self._width].routing(layer)

    def settle(self) -> None:
        """Wait for the device. Raises InfraError (``kernel-gave-up``) if a wait was in vain."""
        if self._record:
            self._record.settle()

    def fill_scratch(self, byte: int) -> None:
        """Fill with ``byte`` all memory that stages leave to each other."""
        for build in self._builds.values():
            build.fill(byte)

    def close(self) -> None:
        """Let go of weights and cache."""
        self._builds.clear()
        self._layers.clear()
        self._cache = None

    def _arms(self, width: int) -> Arms:
        kinds = self._cache_kinds
        numbers = {"KV_KIND": KINDS.index(kinds.kv), "INDEX_KIND": KINDS.index(kinds.index)}
        return Arms(width, numbers, self._folder)

    def _fields(self) -> dict[int, dict[str, int]]:
        """Return the addresses of weights and cache of each sparse layer."""
        assert self._cache is not None  # a closed back end is refused before
        weights = field_sizes(self.shape)
        return {
            number: {name: self._layers[number][name].data_ptr() for name in weights}
            | cache_fields(self._cache, number)
            for number in self._sparse
        }

    @property
    def _sparse(self) -> list[int]:
        return [number for number, kind in enumerate(self.kinds) if kind == "sparse"]

    def _refuse_machine(self) -> Refusal | None:
        needed = sum(map(scratch_bytes, WIDTHS)) + rotary_table("meta").nbytes
        return cuda_refusal(needed, self._number, compiled=self._are_compiled())

    def _are_compiled(self) -> bool:
        """Return whether all builds of `WIDTHS` are on disk; caches of other kinds have none."""
        if not {self._cache_kinds.kv, self._cache_kinds.index} <= set(KINDS):
            return False
        builds = (source for width in WIDTHS for source in self._arms(width).sources)
        return are_kept(builds, self._folder)

    def _faults(self) -> Iterator[Refusal]:
        """Yield what kernels could not read of what is borrowed; of nothing after `close`."""
        if self._cache is None or len(self._layers) != len(self.kinds):
            yield Refusal(
                "mono-layer-count",
                f"{len(self._layers)} layers of weights: expected {len(self.kinds)}, the model's",
            )
            return
        if self._cache.device.type != DEVICE:
            yield Refusal(
                "mono-residency", f"the cache lies on {self.device}: expected a {DEVICE} device"
            )
        for number in self._sparse:
            yield from weight_faults(number, self._layers[number], self.shape, self.device)
            yield from cache_faults(number, self._cache, self.shape, self.device)


def _refuse_shape(shape: LayerShape) -> Refusal | None:
    """Return which numbers of ``shape`` the kernels are not built for, or None."""
    pairs = {f.name: (getattr(shape, f.name), getattr(SHAPE, f.name)) for f in fields(SHAPE)}
    other = [f"{name} {own} (expected {n})" for name, (own, n) in pairs.items() if own != n]
    if not other:
        return None
    return Refusal(
        "mono-shape",
        f"layers with {', '.join(other)}: the CUDA kernels are built for m3_tp4_rank",
    )
