"""95 % intervals on how much a figure changed, over the requests of one run.

A change is a ratio B/A, and everything is computed on its logarithm: swapping the arms inverts the
ratio and its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from infx.analysis.statistics import student

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Indices = NDArray[np.int64]

__all__ = ["RESAMPLES", "SEED", "percentile_of", "rate_of", "request_interval"]

SEED = 7
RESAMPLES = 2000

Columns = Sequence[Sequence[float]]
"""One or more figures of each request, column by column."""

Figure = Callable[[Sequence["Values"]], "Values"]
"""From columns of shape [resamples, requests] to one figure a resample."""

_BLOCK = 1 << 20
"""Numbers that are drawn at once: 8 MB a column."""


def percentile_of(q: float) -> Figure:
    """Return the figure "q-th percentile of the first column", NaN left out."""

    def figure(columns: Sequence[Values]) -> Values:
        import numpy as np

        some = np.nanpercentile if np.isnan(columns[0]).any() else np.percentile
        found: Values = some(columns[0], q, axis=1)
        return found

    return figure


def rate_of(columns: Sequence[Values]) -> Values:
    """Return the sum of the first column over the sum of the second."""
    found: Values = columns[0].sum(axis=1) / columns[1].sum(axis=1)
    return found


def request_interval(
    a: Columns, b: Columns, figure: Figure, *, paired: bool
) -> tuple[float, float] | None:
    """Return the 95 % interval of ``figure(b) / figure(a)`` by resampling requests; None where a
    resampled figure is not above 0, so that there is no ratio.

    `RESAMPLES` times requests are drawn with replacement, the same ones on both sides where they
    are ``paired``. The interval lies between percentiles of these ratios that are widened for few
    requests: the *expanded percentile interval* of T. Hesterberg, "What Teachers Should Know about
    the Bootstrap", The American Statistician 2015. Needs numpy.
    """
    import numpy as np

    ratios = np.concatenate(list(_log_ratios(a, b, figure, paired=paired)))
    if not np.isfinite(ratios).all():
        return None
    tail = 100 * _tail(min(len(a[0]), len(b[0])))
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return math.exp(low), math.exp(high)


def _log_ratios(a: Columns, b: Columns, figure: Figure, *, paired: bool) -> Iterator[Values]:
    import numpy as np

    generator = np.random.default_rng(SEED)
    sides = [[np.asarray(column, dtype=np.float64) for column in side] for side in (a, b)]
    counts = [len(side[0]) for side in sides]
    for rows in _blocks(max(counts)):
        first: Indices = generator.integers(counts[0], size=(rows, counts[0]))
        second: Indices = first if paired else generator.integers(counts[1], size=(rows, counts[1]))
        before = figure([column[first] for column in sides[0]])
        after = figure([column[second] for column in sides[1]])
        with np.errstate(divide="ignore", invalid="ignore"):
            yield np.log(after) - np.log(before)


def _blocks(requests: int) -> Iterator[int]:
    most, left = max(1, _BLOCK // requests), RESAMPLES
    while left > 0:
        yield min(most, left)
        left -= most


def _tail(n: int) -> float:
    """Return the share of resamples to leave out on each side, of ``n`` ≥ 2 requests."""
    return NormalDist().cdf(-student(n - 1) * math.sqrt(n / (n - 1)))
