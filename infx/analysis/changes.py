"""By how much did each figure change from A to B, how sure is that, and is it better?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import Literal

from infx.analysis.intervals import percentile_of, rate_of, repeat_interval, request_interval
from infx.analysis.pairing import Pair
from infx.analysis.requests import Requests, aligned, read_requests
from infx.domain.errors import InfxError
from infx.domain.record import Measurement

__all__ = ["METRICS", "Basis", "Change", "Comparison", "Metric", "Observed", "compare", "observe"]

Verdict = Literal["better", "worse", "no-difference-seen", "not-enough-data"]
Basis = Literal["requests-paired", "requests", "repeats"]

FEW_REQUESTS = 10
"""Below this an interval of a mean or a median held its value less often than it says: 92 % at 6,
95 to 97 % from 10 on (simulated, log-normal latencies, 500 runs each)."""

FEW_IN_TAIL = 20
"""Below this fewer than two requests lie beyond a p90, and one slow request decides it."""

_ZERO = "a figure of 0 has no ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure that is compared. ``of`` reads it from a measurement; ``columns`` and ``figure``
    give the same from requests, the inverse of it where ``inverted``."""

    key: str
    title: str
    better: Literal["more", "less"]
    of: Callable[[Measurement], float]
    columns: tuple[str, ...]
    q: int = 0
    inverted: bool = False


def _percentile(key: str, title: str, column: str, q: int, *, inverted: bool = False) -> Metric:
    return Metric(
        key=f"{key}_p{q}",
        title=title,
        better="more" if inverted else "less",
        of=attrgetter(f"{key}.p{q}"),
        columns=(column,),
        q=q,
        inverted=inverted,
    )


_INTERACTIVITY = ("interactivity_tok_s", "interactivity {} tok/s", "itl_ms")
_LATENCIES = (
    ("ttft_ms", "TTFT {} ms", "ttft_ms"),
    ("itl_ms", "ITL {} ms", "itl_ms"),
    ("e2el_ms", "E2EL {} ms", "e2el_ms"),
)

METRICS: tuple[Metric, ...] = (
    Metric(
        key="output_tput_tok_s_gpu",
        title="output tok/s/GPU",
        better="more",
        of=attrgetter("output_tput_tok_s_gpu"),
        columns=("osl", "e2el_ms"),
    ),
    _percentile(
        "e2e_interactivity_tok_s", "E2E interactivity p90 tok/s", "token_s", 90, inverted=True
    ),
    *(
        _percentile(key, title.format(f"p{q}"), column, q, inverted=True)
        for key, title, column in (_INTERACTIVITY,)
        for q in (50, 90)
    ),
    *(
        _percentile(key, title.format(f"p{q}"), column, q)
        for key, title, column in _LATENCIES
        for q in (50, 90)
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one side of a pair left: its figures and its requests."""

    measurement: Measurement
    requests: Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How one figure changed: ``a`` to ``b``, their ``ratio`` b/a with its 95 % interval.

    ``low`` and ``high`` are None where there is not enough data; ``why`` says what is missing.
    """

    metric: str
    title: str
    a: float
    b: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The changes of one pair of points, over ``repeats`` of it.

    ``basis`` is what the intervals stand on: ``repeats`` when there are two or more; else the
    ``requests`` of one run, of each side; ``unpaired`` says why those could not be paired.
    """

    basis: Basis
    repeats: int
    requests: tuple[int, int]
    changes: tuple[Change, ...]
    unpaired: str = ""


def observe(pair: Pair) -> tuple[Observed, Observed] | str:
    """Return both sides as measured, or why one cannot be read."""
    sides = []
    for side in (pair.a, pair.b):
        record = side.record
        if record is None or record.measurement is None:
            return f"{side.point.label} has no figures"
        try:
            requests = read_requests(side.folder / record.artifacts.get("aiperf", ""))
        except InfxError as error:
            return f"{side.point.label}: {error.message}"
        sides.append(Observed(measurement=record.measurement, requests=requests))
    return sides[0], sides[1]


def compare(repeats: Sequence[tuple[Observed, Observed]]) -> Comparison:
    """Return how the figures changed from the first of each couple to the second.

    With two or more repeats the interval is that of their ratios (Student's t); with one it is
    drawn from its requests, and covers no change from run to run.
    """
    if len(repeats) > 1:
        changes = tuple(_over_repeats(metric, repeats) for metric in METRICS)
        return Comparison(
            basis="repeats", repeats=len(repeats), requests=_counts(repeats), changes=changes
        )
    ((a, b),) = repeats
    requests, unpaired = aligned(a.requests, b.requests)
    after = Observed(measurement=b.measurement, requests=requests)
    changes = tuple(_over_requests(m, a, after, paired=not unpaired) for m in METRICS)
    basis: Basis = "requests" if unpaired else "requests-paired"
    return Comparison(
        basis=basis, repeats=1, requests=_counts(repeats), changes=changes, unpaired=unpaired
    )


def _over_repeats(metric: Metric, repeats: Sequence[tuple[Observed, Observed]]) -> Change:
    before, after = ([metric.of(couple[n].measurement) for couple in repeats] for n in (0, 1))
    if min(*before, *after) <= 0:
        return _change(metric, fmean(before), fmean(after), None, _ZERO)
    interval = repeat_interval([b / a for a, b in zip(before, after, strict=True)])
    return _change(metric, _geometric(before), _geometric(after), interval)


def _over_requests(metric: Metric, a: Observed, b: Observed, *, paired: bool) -> Change:
    before, after = metric.of(a.measurement), metric.of(b.measurement)
    least, have = _needed(metric), min(len(a.requests), len(b.requests))
    if have < least:
        return _change(metric, before, after, None, f"{have} requests, {least} needed")
    interval = _drawn(metric, a.requests, b.requests, paired=paired)
    return _change(metric, before, after, interval, "" if interval else _ZERO)


def _drawn(metric: Metric, a: Requests, b: Requests, *, paired: bool) -> tuple[float, float] | None:
    """Draw the interval. Throughput is requests in flight times tokens over time in flight
    (Little's law), of which the first is held as it was: a closed loop keeps it."""
    before, after = ([side.columns[name] for name in metric.columns] for side in (a, b))
    figure = percentile_of(metric.q) if metric.q else rate_of
    interval = request_interval(before, after, figure, paired=paired)
    if not interval or not metric.inverted:
        return interval
    return 1 / interval[1], 1 / interval[0]


def _change(
    metric: Metric, a: float, b: float, interval: tuple[float, float] | None, why: str = ""
) -> Change:
    low, high = interval or (None, None)
    return Change(
        metric=metric.key,
        title=metric.title,
        a=a,
        b=b,
        ratio=b / a if a else math.nan,
        low=low,
        high=high,
        verdict=_verdict(metric, interval),
        why=why,
    )


def _verdict(metric: Metric, interval: tuple[float, float] | None) -> Verdict:
    if interval is None:
        return "not-enough-data"
    low, high = interval
    if low <= 1 <= high:
        return "no-difference-seen"
    return "better" if (low > 1) == (metric.better == "more") else "worse"


def _needed(metric: Metric) -> int:
    return FEW_IN_TAIL if metric.q > 50 else FEW_REQUESTS


def _counts(repeats: Sequence[tuple[Observed, Observed]]) -> tuple[int, int]:
    return sum(len(a.requests) for a, _ in repeats), sum(len(b.requests) for _, b in repeats)


def _geometric(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))
