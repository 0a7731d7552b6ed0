"""One layer's weights in one array, tile after tile, as its kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cpu.source import weight_offsets
from infx.engine.mono.table import Table

__all__ = ["Floats", "aligned", "packed"]

Floats = npt.NDArray[np.float32]
LINE_BYTES = 64


def aligned(count: int) -> Floats:
    """Return ``count`` zeros that begin on a cache line."""
    room = np.zeros(4 * count + LINE_BYTES, dtype=np.uint8)
    first = -room.ctypes.data % LINE_BYTES
    return room[first : first + 4 * count].view(np.float32)


def packed(table: Table, layer: Mapping[str, Any]) -> Floats:
    """Return the weights of ``layer`` (infx's names, matrices [in, out]) in the table's tiles.

    Norms are kept as 1 + w, each expert's gates beside its ups; the shared expert is the last one.
    """
    offsets = weight_offsets(table)
    out = aligned(offsets[""])
    own = {name: np.asarray(array, dtype=np.float32) for name, array in layer.items()}
    for name, first in offsets.items():
        if name:
            tiles = _PACKERS[name](table.region(name).tiles, own)
            out[first : first + tiles.size] = tiles.ravel()
    return out


def _matrix(name: str) -> Callable[..., Any]:
    """Return the packer of a matrix into [tiles, parts][inputs][outputs of a tile]."""

    def pack(tiles: tuple[int, ...], own: Mapping[str, Floats]) -> Any:
        count, parts = (*tiles, 1)[:2]
        whole = own[name]
        cut = whole.reshape(parts, len(whole) // parts, count, -1)
        return cut.transpose(2, 0, 1, 3)

    return pack


def _pairs(matrix: Floats, count: int) -> Any:
    """Return [tiles][inputs][gates of the tile | its ups] of a matrix [inputs, gates | ups]."""
    return matrix.reshape(len(matrix), 2, count, -1).transpose(2, 0, 1, 3)


def _up(tiles: tuple[int, ...], own: Mapping[str, Floats]) -> Any:
    experts = [*own["experts_up"], own["up"]]
    return np.stack([_pairs(matrix, tiles[-1]) for matrix in experts])


def _down(tiles: tuple[int, ...], own: Mapping[str, Floats]) -> Any:
    experts = [*own["experts_down"], own["down"]]
    return np.stack([m.reshape(len(m), tiles[-1], -1).transpose(1, 0, 2) for m in experts])


def _norm(name: str) -> Callable[..., Any]:
    return lambda _, own: np.float32(1) + own[name]


_PACKERS: dict[str, Callable[..., Any]] = {
    "attention_norm": _norm("attention_norm"),
    "mlp_norm": _norm("mlp_norm"),
    "head_norm": _norm("head_norm"),
    "router_bias": lambda _, own: own["router_bias"],
    "qkv_weight": _matrix("qkv"),
    "o_weight": _matrix("o"),
    "router_weight": _matrix("router"),
    "dense_up_weight": lambda tiles, own: _pairs(own["up"], tiles[-1]),
    "dense_down_weight": _matrix("down"),
    "up_weight": _up,
    "down_weight": _down,
}
