"""Repeats of a point as one: the mean of their figures, and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from infx.analysis.statistics import student

__all__ = [
    "Shift",
    "interval_of",
    "mean_of",
    "shift_apart",
    "shift_intervals",
    "shift_paired",
]


def mean_of(values: Sequence[float]) -> float:
    """Return the geometric mean; the plain one where a value is not above 0.

    The mean of rates is so the inverse of that of latencies. Raises ValueError without a value.
    """
    if not values:
        raise ValueError("a mean needs at least one value")
    least, most = min(values), max(values)
    if least == most:
        return least  # to the last digit: ties are ties
    if least <= 0:
        return fmean(values)
    return math.exp(fmean(map(math.log, values)))


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of repeats; None for fewer than two, or one that is not
    above 0. Student's t on their logarithms."""
    if len(values) < 2 or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    mean, variance = fmean(logs), _squares(logs) / (len(logs) - 1)
    reach = student(len(logs) - 1) * math.sqrt(variance / len(logs))
    return math.exp(mean - reach), math.exp(mean + reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How far logarithms moved from one side of a comparison to the other, over repeats.

    ``squares`` is the sum of squares that they scatter by, over ``df`` degrees of freedom; the
    variance of ``mean`` is ``share`` of that of one of them.
    """

    mean: float
    squares: float
    df: int
    share: float


def shift_paired(a: Sequence[float], b: Sequence[float]) -> Shift | None:
    """Return the shift of figures above 0 that were measured two by two; None otherwise."""
    if min(*a, *b) <= 0:
        return None
    apart = [math.log(after / before) for before, after in zip(a, b, strict=True)]
    return Shift(
        mean=fmean(apart), squares=_squares(apart), df=len(apart) - 1, share=1 / len(apart)
    )


def shift_apart(a: Sequence[float], b: Sequence[float]) -> Shift | None:
    """Return the shift of figures above 0 that were measured each on its own; None otherwise."""
    if min(*a, *b) <= 0:
        return None
    before, after = [math.log(value) for value in a], [math.log(value) for value in b]
    return Shift(
        mean=fmean(after) - fmean(before),
        squares=_squares(before) + _squares(after),
        df=len(a) + len(b) - 2,
        share=1 / len(a) + 1 / len(b),
    )


def shift_intervals(shifts: Sequence[Shift]) -> list[tuple[float, float]]:
    """Return the 95 % intervals of the ratios by which the points of a line moved.

    Two repeats tell next to nothing of their spread (Student's t is 12.7 wide), so noise is taken
    from all points: the larger of a point's own variance and that of all together, at the degrees
    of freedom of all. Simulated with normal logarithms, 2 and 4 repeats, 4,000 runs each: of points
    with one noise 96 % hold their truth, at a third of the width that their own repeats alone need
    (3 points, 2 repeats). Over all points 93 to 98 % do whatever their noise, but of one point that
    is 4 to 10 times as loud as the other 1 to 9 only 85 to 92 % with 4 repeats, and with 2 measured
    in pairs 76 to 88 %: the more quiet ones, the fewer. Needs two repeats of some point.
    """
    df = sum(shift.df for shift in shifts)
    line = sum(shift.squares for shift in shifts) / df
    found = []
    for shift in shifts:
        own = shift.squares / shift.df if shift.df else 0.0
        reach = student(df) * math.sqrt(max(own, line) * shift.share)
        found.append((math.exp(shift.mean - reach), math.exp(shift.mean + reach)))
    return found


def _squares(values: Sequence[float]) -> float:
    # Not statistics.variance, whose exact fractions take ten times as long: reports ask for 7,000.
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)
