"""Rows in tiles: what the functions of all stages do with them."""

from __future__ import annotations

from collections.abc import Sequence

from infx.engine.mono.arithmetic import Vector, add_up, plus, scaled, times, vector
from infx.engine.mono.sums import Sum
from infx.engine.mono.task import Task

__all__ = [
    "add_residual",
    "blank",
    "features",
    "joined",
    "out_features",
    "part_features",
    "product",
    "row_of",
    "weighed",
]


def blank(task: Task, size: int) -> list[Vector[float]]:
    """Return a vector of ``size`` zeros for each row: what a pad's stays."""
    return [vector([0.0] * size) for _ in range(task.table.width)]


def part_features(task: Task, stream: str, norm: str) -> list[Vector[float]]:
    """Return the features of each row of ``stream`` that lie in the task's part of K."""
    tiles = task.table.region(stream).tiles[0] // task.table.region(norm).tiles[0]
    wanted = range(task.at["part"] * tiles, (task.at["part"] + 1) * tiles)
    return [features(task, stream, wanted, row) for row in range(task.table.width)]


def features(task: Task, region: str, tiles: range | None, row: int) -> Vector[float]:
    """Return a row's features in ``tiles`` (all) of a region of rows x features."""
    whole = task.table.region(region)
    size, x = whole.tile_bytes // 4 // task.table.width, vector([])
    for tile in tiles or range(whole.tiles[0]):
        x += row_of(task.read(region, tile), row, size)
    return x


def row_of(numbers: Vector[float], row: int, size: int) -> Vector[float]:
    """Return the ``size`` numbers of ``row``."""
    return numbers[row * size : (row + 1) * size]


def weighed(x: Sequence[float], norm: Sequence[float]) -> Vector[float]:
    """Return x (1 + w)."""
    return times(x, vector([1 + w for w in norm]))


def product(
    total: Sum, x: Vector[float], rows: Sequence[Vector[float]], where: dict[str, int] | None = None
) -> Vector[float]:
    """Return x @ rows in the order of ``total``."""
    return add_up(total, lambda k: scaled(x[k], rows[k]), len(rows[0]), where=where)


def joined(vectors: Sequence[Vector[float]]) -> Vector[float]:
    """Return the vectors one after another."""
    return vector([number for numbers in vectors for number in numbers])


def add_residual(
    task: Task, ranks: str, own: Vector[float], residual: str, targets: tuple[str, ...]
) -> None:
    """Write residual + Σ over ranks of the tile, ranks in their order; a pad's row is 0."""
    tile, size = task.at["tile"], out_features(task)
    if task.shape.ranks > 1:
        parts = task.exchange(ranks, tile, own)
        own = add_up(task.sum("ranks"), lambda rank: parts[rank], len(own))
    total = plus(task.read(residual, tile), own)
    for row in set(range(task.table.width)) - set(task.rows):
        total[row * size : (row + 1) * size] = vector([0.0] * size)
    for target in targets:
        task.write(target, total, tile)


def out_features(task: Task) -> int:
    """Return the features of a tile of the residual stream."""
    return task.shape.hidden // task.table.region("mid").tiles[0]
