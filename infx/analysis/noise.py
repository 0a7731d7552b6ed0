"""How sure a frontier is, from the repeats of its points.

Everything is computed on logarithms: noise of a machine is a share of a figure, and a rate and the
latency that is its inverse then say the same. With one run of each point nothing here can tell how
a second one would come out: `frontier_chances` and `band` return None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from infx.analysis.metrics import COVERAGE_ADVICE
from infx.analysis.pareto import Direction, Place, lowest, signs
from infx.analysis.statistics import student

__all__ = [
    "RESAMPLES",
    "SEED",
    "SURE",
    "Coverage",
    "band",
    "coverage",
    "frontier_chances",
]

SEED = 7
RESAMPLES = 500
"""A chance is right within 0.045 (twice its standard error at 0.5), and 500 points of a line take
half a second."""

SURE = 0.95
"""The chance from which a point counts as on the frontier whatever the noise."""

Repeats = Sequence[Sequence[Place]]
"""Of each point, its place (x, y) in every repeat."""

Corners = tuple[Place, ...]
"""A step line by its corners (x, y), from left to right, as a frontier is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many points of a line are ``on`` its frontier, of those ``measured``, of which
    ``invalid`` ones may not compete. ``least`` counts those that stay on it under noise; None when
    that cannot be told."""

    on: int
    measured: int
    invalid: int
    least: int | None
    advised: int = COVERAGE_ADVICE

    @property
    def enough(self) -> bool:
        """True when the frontier has as many points as advised."""
        return self.on >= self.advised


def frontier_chances(
    points: Repeats,
    directions: tuple[Direction, Direction],
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> list[float | None]:
    """Return for each point of a line the chance that its true place is on the frontier.

    ``resamples`` times every point is drawn around the mean of its repeats, and the frontier of the
    drawn ones is taken. Two or three repeats tell little of their own spread (drawing from them
    alone gives chances that are far too sure), so the spread is that of all points of the line
    together, as a share of their figures, with both axes drawn as they move together; its own
    uncertainty is drawn too, so a place follows Student's t with the degrees of freedom of all
    repeats. None for all points where none has two repeats, or where a figure is not above 0 or
    not finite.

    The chances are cautious: a point is drawn around where noise has put it already. Simulated
    (19 points, 10 or so on the frontier, noise of 0.5 to 3 %, 2 and 3 repeats): of points given
    0.3 to 0.4 about half are on it, of those given 0.8 to 0.9 nine of ten, of those above 0.95
    more than 99 of 100.
    """
    spread = _spread_of(points)
    if spread is None:
        return [None] * len(points)
    counts, near = [0] * len(points), _near(points, directions, spread)
    for drawn in _draws([points[n] for n in near], directions, spread, seed, resamples):
        for index in lowest(drawn):
            counts[near[index]] += 1
    return [count / resamples for count in counts]


def coverage(on: int, chances: Sequence[float | None], invalid: int = 0) -> Coverage:
    """Return how many of a line's points are ``on`` its frontier; ``chances`` are those of all its
    valid points, as `frontier_chances` returns them."""
    told = [chance for chance in chances if chance is not None]
    return Coverage(
        on=on,
        measured=len(chances) + invalid,
        invalid=invalid,
        least=sum(chance >= SURE for chance in told) if told else None,
    )


def band(
    points: Repeats,
    directions: tuple[Direction, Direction],
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> tuple[Corners, Corners] | None:
    """Return the low and the high step line between which the frontier lies, 95 % at each x.

    At an x a frontier is as good as its best point that is at least as good there; low and high
    hold that of the resamples of `frontier_chances` from 2.5 to 97.5 % (low is the worse one). A
    line ends where so many resamples have no point as good as that. None where noise cannot be
    told.
    """
    spread = _spread_of(points)
    if spread is None:
        return None
    points = [points[n] for n in _near(points, directions, spread)]
    grid = _grid(points, directions, spread)
    drawn = [
        _heights([sample[n] for n in lowest(sample)], grid)
        for sample in _draws(points, directions, spread, seed, resamples)
    ]
    rank = math.floor(0.025 * resamples)
    columns = [sorted(column) for column in zip(*drawn, strict=True)]
    worse = [column[-1 - rank] for column in columns]
    better = [column[rank] for column in columns]
    return _corners(grid, worse, directions), _corners(grid, better, directions)


_EXACT = 1e-24
"""A variance below this is what rounding leaves of none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How far one run's logarithms lie from the next, over ``df`` degrees of freedom: deviation of
    x; how y goes along with it; what y does on its own (the Cholesky factor of their covariance).
    """

    x: float
    along: float
    y: float
    df: int


def _spread_of(points: Repeats) -> _Spread | None:
    if not all(0 < value < math.inf for repeats in points for at in repeats for value in at):
        return None
    df = sum(len(repeats) - 1 for repeats in points)
    if df < 1:
        return None
    off = [residual for repeats in points for residual in _residuals(repeats)]
    xx, xy, yy = (math.fsum(a[i] * a[j] for a in off) / df for i, j in ((0, 0), (0, 1), (1, 1)))
    x = math.sqrt(xx) if xx > _EXACT else 0.0
    along = xy / x if x else 0.0
    return _Spread(x=x, along=along, y=math.sqrt(max(0.0, yy - along * along)), df=df)


def _residuals(repeats: Sequence[Place]) -> list[Place]:
    logs = [(math.log(x), math.log(y)) for x, y in repeats]
    mean_x, mean_y = fmean(x for x, _ in logs), fmean(y for _, y in logs)
    return [(x - mean_x, y - mean_y) for x, y in logs]


_BANK, _STRIDE = 8191, 1009
"""Drawing normals is most of the time, so resamples read theirs from other places of one list: at
these primes a point meets thousands of different ones before it meets one again."""


def _draws(
    points: Repeats,
    directions: tuple[Direction, Direction],
    spread: _Spread,
    seed: int,
    resamples: int,
) -> Iterator[list[Place]]:
    """Yield the points as drawn, as logarithms turned so that less is better."""
    sign_x, sign_y = signs(directions)
    along, own = sign_x * sign_y * spread.along, spread.y
    centres, n = _centres(points, directions), len(points)
    narrow = [1 / math.sqrt(len(repeats)) for repeats in points]
    needed = 2 * n + spread.df
    bank = NormalDist().samples(_BANK + needed, seed=seed)
    for number in range(resamples):
        start = number * _STRIDE % _BANK
        drawn = bank[start : start + needed]
        wide = math.sqrt(spread.df / math.fsum(value * value for value in drawn[2 * n :]))
        yield [
            (x + spread.x * wide * share * first, y + wide * share * (along * first + own * second))
            for (x, y), share, first, second in zip(
                centres, narrow, drawn[:n], drawn[n : 2 * n], strict=True
            )
        ]


def _centres(points: Repeats, directions: tuple[Direction, Direction]) -> list[Place]:
    """Return the mean of each point's logarithms, turned so that less is better."""
    sign_x, sign_y = signs(directions)
    return [
        (sign_x * fmean(math.log(x) for x, _ in p), sign_y * fmean(math.log(y) for _, y in p))
        for p in points
    ]


_FAR, _FAR_DF = 6.0, 20
"""Student's t of 20 degrees of freedom is beyond 6 in 1 of 100,000 draws on either side."""


def _near(
    points: Repeats, directions: tuple[Direction, Direction], spread: _Spread
) -> Sequence[int]:
    """Return the points that noise may put on the frontier: those that no other is better than on
    both axes by more than noise does. The rest, most of a large line, need not be drawn."""
    if spread.df < _FAR_DF:
        return range(len(points))
    centres, y = _centres(points, directions), math.hypot(spread.along, spread.y)
    front = [(centres[n], len(points[n])) for n in lowest(centres)]

    def far(place: Place, runs: int) -> bool:
        """True when a point of the frontier is that much better."""
        return any(
            place[0] - other[0] > (reach := _FAR * math.sqrt(1 / runs + 1 / more)) * spread.x
            and place[1] - other[1] > reach * y
            for other, more in front
        )

    return [n for n, place in enumerate(centres) if not far(place, len(points[n]))]


_STEPS = tuple(step / 4 * 1.3 for step in range(-4, 5))
"""Where to look at a band, in half widths of the interval of a point: beyond it on both sides."""


_SEEN = 0.001
"""Steps of a band below a thousandth of its y are not seen, and would be most of its corners."""


def _grid(points: Repeats, directions: tuple[Direction, Direction], spread: _Spread) -> list[float]:
    """Return where a band is looked at: around the x of every point on the frontier of the means,
    as turned logarithms, ascending: the best first."""
    centres = _centres(points, directions)
    half = student(spread.df) * spread.x
    found = set()
    for n in lowest(centres):
        around = half / math.sqrt(len(points[n]))
        found |= {centres[n][0] + around * step for step in _STEPS}
    return sorted(found)


def _heights(members: Sequence[Place], grid: Sequence[float]) -> list[float]:
    """Return at each x of the grid the best y of the members at least as good there (ascending x
    and y are costs); infinity before the first."""
    heights, best, at = [], math.inf, 0
    for x in grid:
        while at < len(members) and members[at][0] <= x:
            best = members[at][1]
            at += 1
        heights.append(best)
    return heights


def _corners(
    grid: Sequence[float], heights: Sequence[float], directions: tuple[Direction, Direction]
) -> Corners:
    """Return the corners in the units of the axes: each x where the line gets better."""
    sign_x, sign_y = signs(directions)
    found: list[Place] = []
    for x, y in zip(grid, heights, strict=True):
        if math.isfinite(y) and (not found or y < found[-1][1] - _SEEN):
            found.append((x, y))
    return tuple(sorted((_exp(sign_x * x), _exp(sign_y * y)) for x, y in found))


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
