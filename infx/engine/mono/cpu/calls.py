"""What a call of a layer reads besides its weights: the step's rows, scratch, the layer's cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cpu.pack import Floats, aligned
from infx.engine.mono.cpu.pointers import ARGUMENTS
from infx.engine.mono.cpu.rows import FAULTS, point, take_rows
from infx.engine.mono.cpu.source import local_sizes
from infx.engine.mono.shape import LayerShape
from infx.engine.mono.table import Table

__all__ = ["CacheAddresses", "LayerCall", "Memory", "Rows", "address_of", "rotary"]


def address_of(array: npt.NDArray[Any]) -> int:
    """Return where an array's numbers begin."""
    return int(array.__array_interface__["data"][0])


@dataclass(frozen=True, slots=True)
class CacheAddresses:
    """Where a layer's part of the cache lies; 0 for what its format or its kind does not have.

    Vectors of keys lie [page, kv head, token], those of values as well; index keys by slot.
    """

    keys: int
    key_scales: int
    values: int
    value_scales: int
    index: int = 0
    index_scales: int = 0

    @classmethod
    def of(cls, kv: Sequence[Any], index: Sequence[Any]) -> CacheAddresses:
        """Return those of a layer's tensors: of ``kv`` the first half of the rows is keys."""
        halves = [at for part in kv for at in (part.data_ptr(), part.data_ptr() + part.nbytes // 2)]
        keys, values, key_scales, value_scales = (*halves, 0, 0)[:4]
        first, scales = (*(part.data_ptr() for part in index), 0, 0)[:2]
        return cls(keys, key_scales, values, value_scales, first, scales)


class Rows:
    """A step as kernels of ``table`` read it: ``count`` rows; ``slots`` are those of the cache."""

    def __init__(self, table: Table, turns: Floats, slots: int) -> None:
        self._turns, self.count = turns, 0
        self._bounds = np.array([slots, table.shape.block, len(turns)], dtype=np.int64)
        self.step = np.zeros((3 + table.shape.pages) * table.width, dtype=np.int32)
        self.turn = np.zeros((table.width, table.shape.rotary_dim), dtype=np.float32)

    def take(
        self,
        batch_ids: npt.NDArray[np.int32],
        positions: npt.NDArray[np.int64],
        slots: npt.NDArray[np.int64],
        pages: npt.NDArray[np.int32],
    ) -> None:
        """Take n rows: ids (below 0: a pad), positions, slots [n], pages [n, m].

        Raises ValueError, having changed nothing, for a row outside the cache or the build, and for
        arrays of other types.
        """
        given = (batch_ids, positions, slots, pages)
        try:
            fault = take_rows(*given, self._turns, self._bounds, self.step, self.turn)
        except TypeError as error:
            told = ", ".join(map(_told, given))
            raise ValueError(
                f"ids, positions, slots, pages are {told}: expected int32, int64, int64 of one"
                " dimension and int32 of two, contiguous"
            ) from error
        if fault:
            rows = {"positions": positions.tolist(), "slots": slots.tolist()}
            raise ValueError(f"{FAULTS[fault]}: {rows}, {pages.shape[1]} pages a row")
        self.count = len(positions)


class Memory:
    """Scratch of a table, used by one layer after another; ``poison`` fills it."""

    def __init__(self, table: Table, poison: float = 0.0) -> None:
        floats, ints = local_sizes(table)
        self.scratch = aligned(floats)
        self.scratch[:] = poison
        self.ints = np.zeros(ints, dtype=np.int64)


class LayerCall:
    """The block of addresses of one layer at one width; keeps alive all that it owns.

    ``routing`` [width, ids | weights, topk] float32 is what the layer chose when it last ran.
    """

    def __init__(
        self,
        table: Table,
        rows: Rows,
        memory: Memory,
        weights: Floats,
        cache: CacheAddresses,
    ) -> None:
        self.routing = np.zeros((table.width, 2, table.shape.experts_per_token), dtype=np.float32)
        self._rows, self._memory, self._weights = rows, memory, weights
        self._hidden = table.shape.hidden
        arrays: dict[str, npt.NDArray[Any]] = {
            "step": rows.step,
            "ints": memory.ints,
            "turn": rows.turn,
            "weights": weights,
            "scratch": memory.scratch,
            "routing": self.routing,
        }
        self._block = np.zeros(len(ARGUMENTS), dtype=np.int64)
        for number, name in enumerate(ARGUMENTS):
            if name in arrays:
                self._block[number] = address_of(arrays[name])
            elif not name.startswith("stream"):
                self._block[number] = getattr(cache, name)
        self._address = address_of(self._block)

    def point(self, stream_in: Floats, stream_out: Floats) -> int:
        """Return the block's address, which never changes; its streams are set.

        Raises ValueError for streams that are not float32 [prepared rows, hidden], C-contiguous.
        """
        try:
            fit = point(self._block, stream_in, stream_out, self._rows.count, self._hidden)
        except TypeError:
            fit = False
        if not fit:
            raise ValueError(
                f"streams are {_told(stream_in)} and {_told(stream_out)}: expected float32"
                f" [{self._rows.count}, {self._hidden}], contiguous, the second writable"
            )
        return self._address

    def fill_scratch(self, byte: int) -> None:
        """Fill with ``byte`` what stages leave to each other, and the routing."""
        for part in (self._memory.scratch, self._memory.ints, self.routing):
            part.view(np.uint8)[:] = byte


def _told(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return f"a {type(array).__name__}"
    return f"{array.dtype} {array.shape} with strides {array.strides}"


def rotary(shape: LayerShape) -> Floats:
    """Return cos, then sin, of each position's angles [reach, rotary dim]."""
    half = shape.rotary_dim // 2
    inverse = [shape.rope_theta ** -(2 * i / shape.rotary_dim) for i in range(half)]
    angles = np.arange(shape.reach)[:, None] * np.array(inverse)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
