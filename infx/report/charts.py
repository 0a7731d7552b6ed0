"""The charts of a report: every pair of metrics that a point tells, with frontiers by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from infx.analysis.curves import line_frontiers
from infx.analysis.metrics import X_METRICS, Y_METRICS, Metric
from infx.report.model import Band, Chart, Mark, PointRow

__all__ = ["charts_of", "on_frontiers"]


_PAIRS: tuple[tuple[Metric, Metric], ...] = tuple((x, y) for y, x in product(Y_METRICS, X_METRICS))
"""Across and up; the deciding pair first."""


def charts_of(rows: Sequence[PointRow], bands: Mapping[int, Band]) -> tuple[Chart, ...]:
    """Return the deciding chart, which alone has ``bands``, then every other that has a point."""
    first, *rest = (_chart(x, y, rows) for x, y in _PAIRS)
    return replace(first, bands=bands), *(chart for chart in rest if chart.marks)


def on_frontiers(rows: Sequence[PointRow], usd_gpu_hour: Mapping[str, float]) -> list[PointRow]:
    """Return the rows with the charts whose frontier of their line they are on."""
    valid = [(row.anchor, record) for row in rows for record in row.repeats]
    found = line_frontiers([record for _, record in valid], _PAIRS, usd_gpu_hour)
    on = {valid[index][0]: pairs for index, pairs in found.items()}
    return [replace(row, frontiers=on.get(row.anchor, frozenset())) for row in rows]


def _chart(x: Metric, y: Metric, rows: Sequence[PointRow]) -> Chart:
    marks = [
        Mark(
            x=row.figures[x.key].value,
            y=row.figures[y.key].value,
            row=row,
            on_frontier=(x.key, y.key) in row.frontiers,
        )
        for row in rows
        if x.key in row.figures and y.key in row.figures
    ]
    lines: dict[int, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.x):
        if mark.on_frontier:
            lines.setdefault(mark.row.series.number, []).append(mark)
    frontiers = {number: tuple(line) for number, line in lines.items()}
    return Chart(x=x, y=y, marks=tuple(marks), frontiers=frontiers)
