"""The compiled arms on this machine's processor: mono's layers and the unfused ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from infx.engine.cache import KvCache
from infx.engine.mono.builder import FLOAT
from infx.engine.mono.cpu.back_end import WIDTHS, CpuBackEnd, packed_layers
from infx.engine.mono.cpu.source import weight_offsets
from infx.engine.mono.plan import make_table
from infx.engine.mono.probe.arms import Reference, Run, Three
from infx.engine.mono.probe.rows import Arm
from infx.engine.mono.shape import CPU_GRAIN, cpu
from infx.engine.mono.step import StepRows
from infx.engine.shapes import ModelConfig

__all__ = ["Compiled", "three"]


class Compiled:
    """Mono's layers and the unfused ones, compiled for this processor, over ``cache``.

    ``widths`` are the builds: a step takes the narrowest that holds its rows. Raises ValueError for
    a cache of another model.
    """

    def __init__(
        self,
        model: ModelConfig,
        weights: Mapping[str, Any],
        cache: KvCache,
        widths: Sequence[int] = WIDTHS,
    ) -> None:
        self._packed = packed_layers(model, weights)
        self._back_end, self._widths = CpuBackEnd(model, self._packed, cache), sorted(widths)
        for width in self._widths:
            if refusal := self._back_end.build(width):
                raise ValueError(str(refusal))
        shape, kinds = self._back_end.shape, set(self._back_end.kinds)
        self._tables = {kind: make_table(shape, kind, 1, cpu(1), CPU_GRAIN) for kind in kinds}

    def prepare(self, step: StepRows) -> None:
        """Take a step."""
        width = next(width for width in self._widths if width >= step.rows)
        self._back_end.prepare(step, width)

    def running(self, arm: Arm) -> Run:
        """Return what runs a layer of the prepared step: (layer, stream [rows, hidden], out)."""
        return self._back_end.run if arm == "mono" else self._back_end.run_unfused

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the experts [rows, topk] that the step's rows chose in ``layer``."""
        return self._back_end.routing(layer)

    def fill_scratch(self, nothing: int) -> None:
        """Fill all memory between stages with bytes ``nothing``."""
        self._back_end.fill_scratch(nothing)

    def experts(self, layer: int, chosen: Collection[int]) -> list[Tensor]:
        """Return views of the packed weights of ``chosen`` experts."""
        shape, table = self._back_end.shape, self._tables[self._back_end.kinds[layer]]
        offsets, found = weight_offsets(table), []
        whole = torch.from_numpy(self._packed[layer])
        for name in ("up_weight", "down_weight"):
            size = table.region(name).bytes // FLOAT // (shape.experts + 1)
            starts = [offsets[name] + expert * size for expert in chosen]
            found += [whole[start : start + size] for start in starts]
        return found


def three(model: ModelConfig, weights: Mapping[str, Any], cache: KvCache) -> Three:
    """Return all arms of this machine's processor over ``cache``."""
    return Three(Compiled(model, weights, cache), Reference(model, weights, cache))
