"""One layer's weights in one array, panel after panel, as its kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cpu.source import weight_offsets
from infx.engine.mono.cpu.vector import panel_of
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
    """Return the weights of ``layer`` (infx's names, matrices [in, out]) in panels.

    Norms are kept as 1 + w; the shared expert is the last one. Equal for tables of all widths.
    """
    offsets = weight_offsets(table)
    out = aligned(offsets[""])
    own = {name: np.asarray(array, dtype=np.float32) for name, array in layer.items()}
    for name, first in offsets.items():
        if name:
            tiles = _PACKERS[name](table.region(name).tiles, own)
            out[first : first + tiles.size] = tiles.ravel()
    return out


def _panels(matrix: Floats, parts: int = 1) -> Any:
    """Return [parts][panels][inputs of a part][outputs of a panel] of a matrix [in, out]."""
    inputs, outputs = matrix.shape
    panel = panel_of(outputs)
    cut = matrix.reshape(parts, inputs // parts, outputs // panel, panel)
    return cut.transpose(0, 2, 1, 3)


def _matrix(name: str) -> Callable[..., Any]:
    return lambda tiles, own: _panels(own[name], (*tiles, 1)[1])


def _experts(name: str) -> Callable[..., Any]:
    """Return the packer of all experts' matrices, the shared one's last."""
    return lambda _, own: np.stack(
        [_panels(matrix) for matrix in (*own[f"experts_{name}"], own[name])]
    )


def _norm(name: str) -> Callable[..., Any]:
    return lambda _, own: np.float32(1) + own[name]


_PACKERS: dict[str, Callable[..., Any]] = {
    "attention_norm": _norm("attention_norm"),
    "mlp_norm": _norm("mlp_norm"),
    "head_norm": _norm("head_norm"),
    "router_bias": lambda _, own: own["router_bias"],
    "qkv_weight": _matrix("qkv"),
    "o_weight": lambda _, own: _panels(own["o"]),
    "router_weight": _matrix("router"),
    "dense_up_weight": lambda _, own: _panels(own["up"]),
    "dense_down_weight": lambda _, own: _panels(own["down"]),
    "up_weight": _experts("up"),
    "down_weight": _experts("down"),
}
