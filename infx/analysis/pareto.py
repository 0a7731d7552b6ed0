"""Frontiers: which points no other point beats.

A point is *dominated* when another is at least as good on every axis and better on one. So exact
duplicates are both kept, and of two points equal on one axis the one that is worse on the other
goes. Nothing is rounded or interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from infx.domain.record import Measurement

__all__ = ["NORTH_STAR", "VIEWS", "Direction", "View", "frontier", "view_frontier"]

Direction = Literal["max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One pair of axes: ``x`` reads the horizontal figure of a measurement; vertical is always
    throughput per GPU, more is better."""

    key: str
    title: str
    x_label: str
    x_unit: str
    x_direction: Direction
    x: Callable[[Measurement], float]

    def coordinates(self, measurement: Measurement) -> tuple[float, float]:
        """Return (x, tokens/s a GPU)."""
        return self.x(measurement), measurement.tput_tok_s_gpu


NORTH_STAR = View(
    key="e2e-interactivity",
    title="E2E-normalised interactivity",
    x_label="P90 E2E-normalised interactivity",
    x_unit="tok/s/user",
    x_direction="max",
    x=lambda measurement: measurement.e2e_interactivity_tok_s.p90,
)
"""Throughput against 1 / p90(E2EL_i / OSL_i): the view that decides what is on a frontier."""

VIEWS: tuple[View, ...] = (
    NORTH_STAR,
    View(
        key="interactivity",
        title="Interactivity",
        x_label="P90 interactivity",
        x_unit="tok/s/user",
        x_direction="max",
        x=lambda measurement: measurement.interactivity_tok_s.p90,
    ),
    View(
        key="e2el",
        title="E2E latency",
        x_label="P90 E2E latency",
        x_unit="s",
        x_direction="min",
        x=lambda measurement: measurement.e2el_ms.p90 / 1000,
    ),
)


def frontier(points: Sequence[Sequence[float]], directions: Sequence[Direction]) -> list[int]:
    """Return the indices of the points that no other dominates, ascending.

    O(n log n) for two axes, O(n · frontier) for others. Raises ValueError for NaN or for a point
    with another number of axes than ``directions``.
    """
    costs = [_costs(point, directions) for point in points]
    order = sorted(range(len(costs)), key=lambda index: costs[index])
    keep = _sweep(costs, order) if len(directions) == 2 else _compare(costs, order)
    return sorted(keep)


def view_frontier(measurements: Sequence[Measurement], view: View) -> list[int]:
    """Return the indices on the frontier of ``view``, ascending.

    The North Star decides: another view shows the intersection of its own frontier with that one.
    """
    shown = _of(measurements, view)
    return sorted(shown & _of(measurements, NORTH_STAR))


def _of(measurements: Sequence[Measurement], view: View) -> set[int]:
    coordinates = [view.coordinates(measurement) for measurement in measurements]
    return set(frontier(coordinates, (view.x_direction, "max")))


def _costs(point: Sequence[float], directions: Sequence[Direction]) -> tuple[float, ...]:
    """Return the point with every axis turned so that less is better."""
    if len(point) != len(directions):
        raise ValueError(f"{point} has {len(point)} axes, expected {len(directions)}")
    if any(math.isnan(value) for value in point):
        raise ValueError(f"{point} holds NaN, which is neither better nor worse than a number")
    pairs = zip(point, directions, strict=True)
    return tuple(-value if direction == "max" else value for value, direction in pairs)


def _sweep(costs: Sequence[tuple[float, ...]], order: Sequence[int]) -> list[int]:
    """Keep, from the best first axis on, each point that improves the second, and its copies."""
    keep: list[int] = []
    for index in order:
        if not keep or costs[index][1] < costs[keep[-1]][1] or costs[index] == costs[keep[-1]]:
            keep.append(index)
    return keep


def _compare(costs: Sequence[tuple[float, ...]], order: Sequence[int]) -> list[int]:
    """Keep each point that no kept one dominates: a dominating point always sorts before."""
    keep: list[int] = []
    for index in order:
        if not any(_dominates(costs[other], costs[index]) for other in keep):
            keep.append(index)
    return keep


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
