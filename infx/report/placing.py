"""Where everything of a chart stands: computed here once, for page and PNG.

Places are integers from 0 to `SPAN` along an axis, so a chart can be drawn at any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from infx.analysis.metrics import X_METRICS, Y_METRICS, Metric
from infx.report.model import Band, Pair, PointRow, ReportModel
from infx.report.scales import Scale, linear_scale, log_scale, scale_for, tick_text

__all__ = [
    "SPAN",
    "Axes",
    "Axis",
    "Place",
    "Placed",
    "axes_along",
    "axes_of",
    "axis_of",
    "band_outline",
    "step_corners",
]

SPAN = 10_000
"""Length of an axis: a hundredth of a percent is a tenth of a pixel of a chart 1,000 wide."""

Place = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One scale of an axis: where each row stands (None: it does not tell the metric), from where
    to where its interval reaches (cut at the chart's edge), and the ticks with their texts."""

    scale: Scale
    at: tuple[int | None, ...]
    spread: Mapping[int, tuple[int, int]]
    ticks: tuple[tuple[int, str], ...]

    def place(self, value: float) -> int:
        """Return where ``value`` stands, at the edge when it lies beyond."""
        if self.scale.log and value <= 0:
            return round(self.scale.start)
        return max(0, min(SPAN, round(self.scale.pixel(value))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A metric along an axis: linear, and logarithmic where all values are above 0. ``log_first``
    says which one a reader sees first."""

    metric: Metric
    linear: Placed
    log: Placed | None
    log_first: bool

    @property
    def first(self) -> Placed:
        """The scale that a reader sees first."""
        return self.log if self.log and self.log_first else self.linear


Axes = tuple[tuple[Axis, ...], tuple[Axis, ...]]
"""The axes across and up, those that a chart has."""


def axes_of(model: ReportModel) -> Axes:
    """Return where the rows, then the baseline's rows, stand along each metric that is drawn."""
    rows = [*model.rows, *(model.baseline.rows if model.baseline else ())]
    xs = {chart.x.key for chart in model.charts}
    ys = {chart.y.key for chart in model.charts}
    return (
        tuple(axis_of(metric, rows) for metric in X_METRICS if metric.key in xs),
        tuple(axis_of(metric, rows, up=True) for metric in Y_METRICS if metric.key in ys),
    )


def axes_along(axes: Axes, pair: Pair) -> tuple[Axis, Axis]:
    """Return the axes of a chart by the keys of its metrics."""
    x, y = (
        next(axis for axis in some if axis.metric.key == key)
        for some, key in zip(axes, pair, strict=True)
    )
    return x, y


def axis_of(metric: Metric, rows: Sequence[PointRow], *, up: bool = False) -> Axis:
    """Return where each of ``rows`` stands along ``metric``; ``up`` counts from the bottom."""
    start, end = (SPAN, 0) if up else (0, SPAN)
    values = [row.figures[metric.key].value for row in rows if metric.key in row.figures]
    log = _placed(log_scale(values, start, end), metric, rows) if _positive(values) else None
    return Axis(
        metric=metric,
        linear=_placed(linear_scale(values, start, end), metric, rows),
        log=log,
        log_first=scale_for(values, start, end).log,
    )


def step_corners(places: Sequence[Place], *, across_first: bool) -> list[Place]:
    """Return the corners of the steps through ``places`` (from left to right): the edge of what
    they dominate, nothing interpolated. ``across_first``: less is better along x."""
    corners = list(places[:1])
    for (x, y), (to_x, to_y) in pairwise(places):
        corners += [(to_x, y) if across_first else (x, to_y), (to_x, to_y)]
    return corners


def band_outline(band: Band) -> list[Place]:
    """Return the corners around a band of the deciding chart, whose metrics are both better when
    more: every edge runs along an axis, also where one of its lines reaches further than the other.
    """
    start = min(band.low[0][0], band.high[0][0])
    floor = min(band.low[-1][1], band.high[-1][1])
    low, high = (_shadow(corners, start, floor) for corners in (band.low, band.high))
    return [*low, *reversed(high)]


def _shadow(corners: Sequence[Place], start: float, floor: float) -> list[Place]:
    """Return the steps through ``corners``, level from ``start`` on and down to ``floor``: what
    they dominate goes so far at least."""
    first, last = (start, corners[0][1]), (corners[-1][0], floor)
    return [first, *step_corners(corners, across_first=False), last]


def _positive(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0


def _placed(scale: Scale, metric: Metric, rows: Sequence[PointRow]) -> Placed:
    bare = Placed(scale=scale, at=(), spread={}, ticks=())
    figures = [row.figures.get(metric.key) for row in rows]
    return Placed(
        scale=scale,
        at=tuple(None if f is None else bare.place(f.value) for f in figures),
        spread={
            index: (bare.place(f.low), bare.place(f.high))
            for index, f in enumerate(figures)
            if f is not None and f.low is not None and f.high is not None
        },
        ticks=tuple((bare.place(tick), tick_text(tick)) for tick in scale.ticks()),
    )
