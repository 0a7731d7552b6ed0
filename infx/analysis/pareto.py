"""Frontiers: which points no other point beats.

A point is *dominated* when another is at least as good on every axis and better on one. So exact
duplicates are both kept, and of two points equal on one axis the one that is worse on the other
goes. Nothing is rounded or interpolated.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

__all__ = [
    "Direction",
    "Place",
    "dominators",
    "frontier",
    "hypervolume",
    "lowest",
    "signs",
]

Direction = Literal["max", "min"]

Place = tuple[float, float]
"""A point on two axes."""


def frontier(points: Sequence[Sequence[float]], directions: Sequence[Direction]) -> list[int]:
    """Return the indices of the points that no other dominates, ascending.

    O(n log n) for two axes, O(n · frontier) for others. Raises ValueError for NaN or for a point
    with another number of axes than ``directions``.
    """
    costs = [_costs(point, directions) for point in points]
    return sorted(lowest(costs) if len(directions) == 2 else _compare(costs, _order(costs)))


def lowest(costs: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the same for two axes on which less is better and nothing is NaN, best first axis
    first."""
    keep: list[int] = []
    for index in _order(costs):
        if not keep or costs[index][1] < costs[keep[-1]][1] or costs[index] == costs[keep[-1]]:
            keep.append(index)
    return keep


def dominators(
    points: Sequence[Sequence[float]], directions: Sequence[Direction]
) -> list[int | None]:
    """Return for each point the index of a frontier point that dominates it, the nearest on the
    first axis (of equal ones the first), None for those on the frontier. Errors: see `frontier`."""
    costs = [_costs(point, directions) for point in points]
    members = sorted(frontier(points, directions), key=lambda n: (costs[n], -n))
    firsts = [costs[n][0] for n in members]

    def nearest(cost: tuple[float, ...]) -> int:
        # With two axes the first one looked at dominates: its second cost is the least so far.
        no_better = range(bisect_right(firsts, cost[0]) - 1, -1, -1)
        return next(members[at] for at in no_better if _dominates(costs[members[at]], cost))

    kept = set(members)
    return [None if n in kept else nearest(cost) for n, cost in enumerate(costs)]


def hypervolume(
    points: Sequence[Place], directions: tuple[Direction, Direction], reference: Place
) -> float:
    """Return the area that the points dominate up to ``reference``, exact, in the product of the
    axes' units. A point that is not better than the reference on both axes adds nothing.

    E. Zitzler and L. Thiele, "Multiobjective Optimization Using Evolutionary Algorithms" (1998).
    Raises ValueError for NaN.
    """
    kept = sorted(_costs(points[n], directions) for n in frontier(points, directions))
    edge_x, edge_y = _costs(reference, directions)
    area, reached = 0.0, edge_y
    for x, y in kept:
        if x < edge_x and y < reached:
            area += (edge_x - x) * (reached - y)
            reached = y
    return area


def signs(directions: tuple[Direction, Direction]) -> Place:
    """Return what to multiply a place by so that less is better on both axes."""
    x, y = (-1.0 if direction == "max" else 1.0 for direction in directions)
    return x, y


def _costs(point: Sequence[float], directions: Sequence[Direction]) -> tuple[float, ...]:
    """Return the point with every axis turned so that less is better."""
    if len(point) != len(directions):
        raise ValueError(f"{point} has {len(point)} axes, expected {len(directions)}")
    if any(math.isnan(value) for value in point):
        raise ValueError(f"{point} holds NaN, which is neither better nor worse than a number")
    pairs = zip(point, directions, strict=True)
    return tuple(-value if direction == "max" else value for value, direction in pairs)


def _order(costs: Sequence[tuple[float, ...]]) -> list[int]:
    return sorted(range(len(costs)), key=costs.__getitem__)


def _compare(costs: Sequence[tuple[float, ...]], order: Sequence[int]) -> list[int]:
    """Keep each point that no kept one dominates: a dominating point always sorts before."""
    keep: list[int] = []
    for index in order:
        if not any(_dominates(costs[other], costs[index]) for other in keep):
            keep.append(index)
    return keep


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
