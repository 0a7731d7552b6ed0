"""How the frontier of a line changed between two arms, over the points that both measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from infx.analysis.changes import Observed, Sides
from infx.analysis.curves import line_of
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.analysis.noise import Coverage, coverage, frontier_chances
from infx.analysis.pairing import Pair
from infx.analysis.pareto import Place, frontier, hypervolume
from infx.analysis.repeats import interval_of, mean_of

__all__ = ["LineChange", "line_change"]

ORIGIN: Place = (0.0, 0.0)
"""Up to where an area is counted: no throughput at no interactivity."""

_WAYS = NORTH_STAR.direction, THROUGHPUT.direction

Runs = Sequence[Sequence[Place]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """The deciding frontiers of A and B over the same ``points``, each with the ``area`` that it
    dominates up to `ORIGIN` (tok/s/user × tok/s/GPU), and the ``ratio`` of those.

    ``low`` and ``high`` are its 95 % interval over repeats that were measured in turn, None without
    two of every point.
    """

    entry: str
    workload: str
    points: int
    a: Coverage
    b: Coverage
    area: tuple[float, float]
    ratio: float
    low: float | None = None
    high: float | None = None


def line_change(line: Sequence[tuple[Pair, Sides]]) -> LineChange:
    """Return the change of a line of one point or more."""
    first = line_of(line[0][0].a.point)
    before = [_places(sides.before) for _, sides in line]
    after = [_places(sides.after) for _, sides in line]
    areas = _area([_mean(runs) for runs in before]), _area([_mean(runs) for runs in after])
    low, high = _interval(before, after, [sides.paired for _, sides in line]) or (None, None)
    return LineChange(
        entry=first.entry,
        workload=first.workload,
        points=len(line),
        a=_coverage(before),
        b=_coverage(after),
        area=areas,
        ratio=areas[1] / areas[0] if areas[0] else math.nan,
        low=low,
        high=high,
    )


def _places(runs: Sequence[Observed]) -> list[Place]:
    told = [(run.figure(NORTH_STAR), run.figure(THROUGHPUT)) for run in runs]
    return [(x, y) for x, y in told if x is not None and y is not None]


def _mean(runs: Sequence[Place]) -> Place:
    return mean_of([x for x, _ in runs]), mean_of([y for _, y in runs])


def _area(places: Sequence[Place]) -> float:
    return hypervolume(places, _WAYS, ORIGIN)


def _coverage(points: Runs) -> Coverage:
    on = frontier([_mean(runs) for runs in points], _WAYS)
    return coverage(len(on), frontier_chances(points, _WAYS))


def _interval(before: Runs, after: Runs, paired: Sequence[bool]) -> tuple[float, float] | None:
    """Return that of the ratios of the areas that each repeat of the whole line gives."""
    counts = {len(runs) for runs in (*before, *after)}
    if not all(paired) or len(counts) > 1:
        return None
    first, second = (
        [_area(repeat) for repeat in zip(*side, strict=True)] for side in (before, after)
    )
    return interval_of([b / a for a, b in zip(first, second, strict=True)]) if all(first) else None
