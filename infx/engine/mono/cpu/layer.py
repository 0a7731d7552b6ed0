"""One layer at one width, ready to run: its arrays, and the two arms that run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cpu.compiled import Build
from infx.engine.mono.cpu.pack import Floats, aligned
from infx.engine.mono.cpu.source import local_sizes
from infx.engine.mono.table import Table

__all__ = ["NOTHING", "LayerCache", "Memory", "Rows", "mono", "unfused"]

NOTHING: Floats = np.zeros(1, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class LayerCache:
    """A layer's part of the cache as flat views of the engine's own tensors.

    Vectors of keys lie [page, kv head, token], those of values behind them; index keys by slot. A
    format without scales has `NOTHING` there, a layer without an indexer in both of ``index``.
    """

    kv: npt.NDArray[Any]
    kv_scale: npt.NDArray[Any]
    index: npt.NDArray[Any]
    index_scale: npt.NDArray[Any]


class Rows:
    """What a step says of its rows, as kernels read it; ``width`` of them, pads at the end."""

    def __init__(self, table: Table) -> None:
        self.width, self._pages = table.width, table.shape.pages
        self.step = np.zeros(self.width * (3 + self._pages), dtype=np.int32)
        self.turn = np.zeros(self.width * table.shape.rotary_dim, dtype=np.float32)

    def fill(
        self,
        batch_ids: npt.NDArray[np.int32],
        positions: npt.NDArray[Any],
        slots: npt.NDArray[Any],
        pages: npt.NDArray[Any],
        turn: Floats,
    ) -> None:
        """Take a step of n <= width rows: ids, positions, slots [n], pages [n, m], turn [n, r]."""
        rows, lines = len(batch_ids), self.step[: 3 * self.width].reshape(3, -1)
        lines[0, rows:] = -1
        lines[0, :rows], lines[1, :rows], lines[2, :rows] = batch_ids, positions, slots
        table = self.step[3 * self.width :].reshape(self.width, self._pages)
        table[:rows, : pages.shape[1]] = pages
        self.turn.reshape(self.width, -1)[:rows] = turn


class Memory:
    """Scratch of a table, used by one layer after another; ``poison`` fills it."""

    def __init__(self, table: Table, poison: float = 0.0) -> None:
        floats, ints = local_sizes(table)
        self.scratch = aligned(floats)
        self.scratch[:] = poison
        self.ints = np.zeros(ints, dtype=np.int64)
        self.routing = np.zeros((table.width, 2, table.shape.experts_per_token), dtype=np.float32)


Arm = Callable[..., None]


def mono(build: Build) -> Arm:
    """Return the layer as one compiled call; its arguments are `LAYER_ARGUMENTS`."""
    return build.module.layer  # type: ignore[no-any-return]


def unfused(build: Build) -> Arm:
    """Return the layer as a call a stage, each of the same compiled stages."""
    stages = build.stages()

    def layer(*arguments: Any) -> None:
        for function, taken in stages:
            function(*[arguments[i] for i in taken])

    return layer
