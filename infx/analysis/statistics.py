"""The statistics that the figures stand on, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

from infx.domain.record import Bounds, Distribution

__all__ = [
    "QUANTILES",
    "Z95",
    "describe",
    "error_bounds",
    "moments",
    "percentile",
    "standard_error",
    "student",
    "wilson",
]

QUANTILES = (50, 75, 90, 95, 99)

Z95 = 1.959963984540054
"""Standard deviations of a normal law that hold 95 % of it."""

_T975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
)  # fmt: skip
"""Student's t at 97.5 % for 1 … 10 degrees of freedom."""


def percentile(ordered: Sequence[float], q: float) -> float:
    """Return the q-th percentile (0 … 100) of ascending values.

    Linear between the two nearest ranks, at rank (n-1)·q/100: definition 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages" (1996), which is numpy's ``linear`` and aiperf's.
    Raises ValueError when there is no value.
    """
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    return _at(ordered, _rank(len(ordered), q))


def describe(values: Sequence[float]) -> Distribution:
    """Return the distribution of ``values``; ``std`` is that of the values themselves (n, not n-1),
    as aiperf has it. Raises ValueError when there is no value."""
    ordered = sorted(values)
    p50, p75, p90, p95, p99 = (percentile(ordered, q) for q in QUANTILES)
    mean, std = moments(ordered)
    return Distribution(
        n=len(ordered),
        mean=mean,
        std=std,
        p50=p50,
        p75=p75,
        p90=p90,
        p95=p95,
        p99=p99,
    )


def moments(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and std (n, not n-1) of ``values``, of which there is one at least."""
    mean = math.fsum(values) / len(values)
    return mean, math.dist(values, [mean] * len(values)) / math.sqrt(len(values))


def error_bounds(values: Sequence[float], failed: int) -> Bounds:
    """Return between what values each percentile of ``values`` and of ``failed`` more ones lies,
    whatever those would be from 0 to infinity, and however many of them would be there at all.

    A percentile rises with each of its values, so it is least with all failed ones at 0 and most
    with all at infinity; there it is open (None) once its rank touches one of them. Raises
    ValueError when there is no value.
    """
    if not values:
        raise ValueError("a bound needs at least one value")
    ordered = sorted(values)
    from_zero = [0.0] * failed + ordered
    ranks = [_rank(len(from_zero), q) for q in QUANTILES]
    p50, p75, p90, p95, p99 = (
        (_at(from_zero, rank), _at(ordered, rank) if rank <= len(ordered) - 1 else None)
        for rank in ranks
    )
    return Bounds(p50=p50, p75=p75, p90=p90, p95=p95, p99=p99)


def _rank(n: int, q: float) -> float:
    return (n - 1) * q / 100


def _at(ordered: Sequence[float], rank: float) -> float:
    index = math.floor(rank)
    share = rank - index
    below, above = ordered[index], ordered[min(index + 1, len(ordered) - 1)]
    # From the nearer end, so that equal neighbours give themselves and ranks keep their order.
    if share < 0.5:
        return below + (above - below) * share
    return above - (above - below) * (1 - share)


def standard_error(share: float, n: int) -> float:
    """Return the binomial standard error of a ``share`` seen in ``n`` trials.

    √(p(1-p)/(n-1)), the unbiased form that lm-eval prints; 0 when n is 1 or less. It is 0 too at
    shares of 0 and 1, where only an interval tells how little is known: see `wilson`.
    """
    return math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else 0.0


def wilson(share: float, n: int, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a ``share`` seen in ``n`` trials (95 % by default).

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference" (1927). It
    stays inside [0, 1] and has a width at shares of 0 and 1. Raises ValueError when n is 0.
    """
    if n < 1:
        raise ValueError("an interval needs at least one trial")
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    centre = share + z * z / (2 * n)
    scale = 1 + z * z / n
    low = (centre - spread) / scale if share > 0 else 0.0
    high = (centre + spread) / scale if share < 1 else 1.0
    return low, high


def student(df: int) -> float:
    """Return Student's t at 97.5 %: above the table by G. W. Hill's expansion around the normal
    (Communications of the ACM 1970, algorithm 396), right to 0.0005."""
    if df <= len(_T975):
        return _T975[df - 1]
    first = (Z95**3 + Z95) / (4 * df)
    second = (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * df**2)
    third = (3 * Z95**7 + 19 * Z95**5 + 17 * Z95**3 - 15 * Z95) / (384 * df**3)
    return Z95 + first + second + third
