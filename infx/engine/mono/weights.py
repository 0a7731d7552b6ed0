"""One layer's weights as nested lists, cut into the tiles of the table's weight regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infx.engine.mono.arithmetic import Vector, vector
from infx.engine.mono.table import Table

__all__ = ["Weights"]


class Weights:
    """Tiles of a ``layer`` whose matrices are [in][out].

    Its names are infx's: attention_norm, mlp_norm, head_norm, qkv, o, up, down, router,
    router_bias, experts_up, experts_down. The table gives the sizes of tiles, equal at every width.
    """

    def __init__(self, table: Table, layer: Mapping[str, Any]) -> None:
        self.layer = layer
        self._counts = {region.name: region.tiles for region in table.regions}
        self._experts = table.shape.experts
        self._tiles: dict[tuple[str, tuple[int, ...]], list[Vector[float]]] = {}

    def tile(self, region: str, tile: tuple[int, ...]) -> list[Vector[float]]:
        """Return for each input of the tile its row of outputs; a norm or a bias is one row."""
        key = (region, tile)
        if key not in self._tiles:
            self._tiles[key] = [vector(row) for row in _CUTS[region](self, *tile)]
        return self._tiles[key]

    def norm(self, name: str, part: int) -> list[Sequence[float]]:
        """Return a part of a norm's weights, as one row."""
        numbers = self.layer[name]
        return [numbers[_slice(len(numbers), self._counts[name][0], part)]]

    def matrix(self, name: str, region: str, tile: int, part: int = 0) -> list[Sequence[float]]:
        """Return inputs of a part by outputs of a tile."""
        whole, counts = self.layer[name], (*self._counts[region], 1)
        return _cut(whole[_slice(len(whole), counts[1], part)], counts[0], tile)

    def pairs(self, matrix: Sequence[Sequence[float]], count: int, tile: int) -> list[Any]:
        """Return the gates of a tile, then its ups, of a matrix [in][gates | ups]."""
        half = len(matrix[0]) // 2
        gates = _cut([row[:half] for row in matrix], count, tile)
        ups = _cut([row[half:] for row in matrix], count, tile)
        return [[*gate, *up] for gate, up in zip(gates, ups, strict=True)]

    def expert(self, name: str, number: int) -> Any:
        """Return the matrix of an expert; the last one is the shared expert's."""
        shared = number == self._experts
        return self.layer[name] if shared else self.layer[f"experts_{name}"][number]

    def count(self, region: str) -> int:
        """Return the tiles along the last dimension of ``region``."""
        return self._counts[region][-1]


def _slice(length: int, count: int, number: int) -> slice:
    size = length // count
    return slice(number * size, (number + 1) * size)


def _cut(matrix: Sequence[Sequence[float]], count: int, tile: int) -> list[Sequence[float]]:
    return [row[_slice(len(row), count, tile)] for row in matrix]


_CUTS: dict[str, Callable[..., list[Any]]] = {
    "attention_norm": lambda w, part: w.norm("attention_norm", part),
    "mlp_norm": lambda w, part: w.norm("mlp_norm", part),
    "head_norm": lambda w, head: [w.layer["head_norm"][head]],
    "router_bias": lambda w, _: [w.layer["router_bias"]],
    "qkv_weight": lambda w, tile, part: w.matrix("qkv", "qkv_weight", tile, part),
    "o_weight": lambda w, tile: w.matrix("o", "o_weight", tile),
    "router_weight": lambda w, tile, part: w.matrix("router", "router_weight", tile, part),
    "dense_up_weight": lambda w, tile: w.pairs(w.layer["up"], w.count("dense_up_weight"), tile),
    "dense_down_weight": lambda w, tile: w.matrix("down", "dense_down_weight", tile),
    "up_weight": lambda w, expert, tile: w.pairs(
        w.expert("up", expert), w.count("up_weight"), tile
    ),
    "down_weight": lambda w, expert, tile: _cut(
        w.expert("down", expert), w.count("down_weight"), tile
    ),
}
