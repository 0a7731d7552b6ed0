"""By how much did each figure change from A to B, how sure is that, and is it better?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from infx.analysis.intervals import percentile_of, rate_of, request_interval
from infx.analysis.metrics import COMPARED, Drawn, Metric, Priced
from infx.analysis.pairing import Seen
from infx.analysis.repeats import Shift, mean_of, shift_apart, shift_intervals, shift_paired
from infx.analysis.requests import Requests, aligned, read_requests
from infx.domain.errors import InfxError
from infx.domain.record import Energy, Measurement

__all__ = [
    "VERDICTS",
    "Basis",
    "Change",
    "Comparison",
    "Observed",
    "Sides",
    "Verdict",
    "compare",
    "compare_figures",
    "observe",
    "observe_requests",
]

Verdict = Literal["better", "worse", "no-difference-seen", "not-enough-data"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a figure's change may be, in the order of reports."""

Basis = Literal["requests-paired", "requests", "repeats-paired", "repeats"]
Interval = tuple[float, float]

_ZERO = "no ratio to 0"
_ONE = "one figure a side"
_RUNS = "needs repeats"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one run of a point left: its figures, and its requests where there is but this run."""

    measurement: Measurement
    energy: Energy | None = None
    requests: Requests | None = None

    def figure(self, metric: Metric) -> float | None:
        """Return a figure; None where the run does not tell it."""
        return metric.of(Priced(measurement=self.measurement, energy=self.energy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The runs of a point before and after; where they are ``paired``, they are as many, and each
    was measured beside the one of the same place."""

    before: tuple[Observed, ...]
    after: tuple[Observed, ...]
    paired: bool = False

    @property
    def repeated(self) -> bool:
        """True when a side has more than one run."""
        return len(self.before) + len(self.after) > 2

    def figures(self, metric: Metric) -> tuple[list[float], list[float]] | None:
        """Return a figure of each run on both sides; None where one does not tell it."""
        told = [[one.figure(metric) for one in side] for side in (self.before, self.after)]
        known = [[value for value in side if value is not None] for side in told]
        return (known[0], known[1]) if known == told else None


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

    @property
    def percent(self) -> float:
        """The change as a share of ``a``, in percent; NaN where it has none."""
        return (self.ratio - 1) * 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The changes of one pair of points, over ``repeats`` and ``requests`` of each side.

    ``basis`` is what the intervals stand on: ``repeats`` when a side has two or more, paired where
    they were measured in turn, with the noise of ``noise_points`` points; else the ``requests`` of
    one run, of each side; ``unpaired`` says why those could not be paired.
    """

    basis: Basis
    repeats: tuple[int, int]
    requests: tuple[int, int]
    changes: tuple[Change, ...]
    unpaired: str = ""
    noise_points: int = 0


def observe(side: Seen) -> Observed | str:
    """Return a run of a point as measured, or why it cannot be read."""
    record = side.record
    if record is None or record.measurement is None:
        return f"{side.point.label} has no figures"
    return Observed(measurement=record.measurement, energy=record.energy)


def observe_requests(side: Seen) -> Observed | str:
    """Return the same with its requests."""
    found = observe(side)
    if isinstance(found, str) or side.record is None:
        return found
    try:
        requests = read_requests(side.folder / side.record.artifacts.get("aiperf", ""))
    except InfxError as error:
        return f"{side.point.label}: {error.message}"
    return Observed(measurement=found.measurement, energy=found.energy, requests=requests)


def compare(points: Sequence[Sides]) -> list[Comparison]:
    """Return how the figures of the points of one line changed.

    With two or more repeats the interval is that of their ratios (`repeats.shift_intervals`); with
    one run a side it is drawn from its requests, and covers no change from run to run. A figure
    that a run does not tell is left out.
    """
    kinds = {
        paired: [p for p in points if p.repeated and p.paired is paired] for paired in (True, False)
    }
    over = {paired: iter(_over_repeats(some)) for paired, some in kinds.items()}
    return [next(over[p.paired]) if p.repeated else _over_requests(p) for p in points]


def compare_figures(metric: Metric, a: float, b: float) -> Change:
    """Return how a published figure changed: two numbers have a ratio and no interval."""
    return _change(metric, a, b, None, _ONE)


def _over_repeats(points: Sequence[Sides]) -> list[Comparison]:
    """Compare points that are all paired, or all not."""
    columns = [_column(metric, points) for metric in COMPARED]
    return [
        Comparison(
            basis="repeats-paired" if point.paired else "repeats",
            repeats=(len(point.before), len(point.after)),
            requests=_counts(point),
            changes=tuple(change for change in changes if change),
            noise_points=len(points),
        )
        for point, *changes in zip(points, *columns, strict=True)
    ]


def _column(metric: Metric, points: Sequence[Sides]) -> list[Change | None]:
    """Return the change of one metric in each point."""
    figures = [point.figures(metric) for point in points]
    shifts = [
        _shift(told, paired=point.paired) if told else None
        for told, point in zip(figures, points, strict=True)
    ]
    known = [shift for shift in shifts if shift]
    intervals = iter(shift_intervals(known) if known else ())
    return [
        _repeated(metric, told, next(intervals) if shift else None) if told else None
        for told, shift in zip(figures, shifts, strict=True)
    ]


def _shift(figures: tuple[list[float], list[float]], *, paired: bool) -> Shift | None:
    return shift_paired(*figures) if paired else shift_apart(*figures)


def _repeated(
    metric: Metric, figures: tuple[list[float], list[float]], interval: Interval | None
) -> Change:
    before, after = map(mean_of, figures)
    return _change(metric, before, after, interval, "" if interval else _ZERO)


def _over_requests(point: Sides) -> Comparison:
    (a,), (b,) = point.before, point.after
    assert a.requests is not None
    assert b.requests is not None
    requests, unpaired = aligned(a.requests, b.requests)
    changes = [
        _one_run(metric, told[0][0], told[1][0], (a.requests, requests), paired=not unpaired)
        for metric in COMPARED
        if (told := point.figures(metric))
    ]
    return Comparison(
        basis="requests" if unpaired else "requests-paired",
        repeats=(1, 1),
        requests=_counts(point),
        changes=tuple(changes),
        unpaired=unpaired,
    )


def _one_run(
    metric: Metric, a: float, b: float, sides: tuple[Requests, Requests], *, paired: bool
) -> Change:
    if metric.drawn is None:
        return _change(metric, a, b, None, _RUNS)
    if min(map(len, sides)) < metric.drawn.needed:
        return _change(metric, a, b, None, f"needs {metric.drawn.needed} requests")
    interval = _interval(metric.drawn, *sides, paired=paired)
    if interval is None or a <= 0:
        return _change(metric, a, b, None, _ZERO)
    return _change(metric, a, b, (min(interval[0], b / a), max(interval[1], b / a)), "")


def _interval(drawn: Drawn, a: Requests, b: Requests, *, paired: bool) -> Interval | None:
    """Draw the interval. Throughput is requests in flight times tokens over time in flight
    (Little's law), of which the first is taken as the same on both sides: a closed loop keeps it.

    With few requests a lane its ramp and drain do not, and the measured change may lie outside: the
    caller widens the interval to it, so that none is called a change that its own figures deny.
    """
    before, after = ([side.columns[name] for name in drawn.columns] for side in (a, b))
    figure = percentile_of(drawn.q) if drawn.q else rate_of
    interval = request_interval(before, after, figure, paired=paired)
    if not interval or not drawn.inverted:
        return interval
    return 1 / interval[1], 1 / interval[0]


def _change(metric: Metric, a: float, b: float, interval: Interval | None, why: str) -> Change:
    low, high = interval or (None, None)
    return Change(
        metric=metric.key,
        title=metric.label,
        a=a,
        b=b,
        ratio=b / a if a else math.nan,
        low=low,
        high=high,
        verdict=_verdict(metric, interval),
        why=why,
    )


def _verdict(metric: Metric, interval: Interval | None) -> Verdict:
    if interval is None:
        return "not-enough-data"
    low, high = interval
    if low <= 1 <= high:
        return "no-difference-seen"
    return "better" if (low > 1) == (metric.better == "more") else "worse"


def _counts(point: Sides) -> tuple[int, int]:
    before, after = (
        sum(one.measurement.requests.ok for one in side) for side in (point.before, point.after)
    )
    return before, after
