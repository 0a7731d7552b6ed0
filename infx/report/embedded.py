"""What the page's script needs to move the chart, as compact JSON.

Places, ticks and texts of figures are ready: the script joins places by steps, computes no place
and no figure.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from infx.analysis.changes import VERDICTS, Change
from infx.analysis.metrics import METRICS
from infx.report.families import Family
from infx.report.figures import percent, signed, with_spread
from infx.report.model import Chart, Filter, PointRow, ReportModel, Shown
from infx.report.opened import opened
from infx.report.palette import line_style
from infx.report.placing import Axes, Axis, Placed, axes_along, band_outline

__all__ = ["embedded", "filter_key"]


def embedded(model: ReportModel, axes: Axes, families: Sequence[Family]) -> str:
    """Return the JSON as gzip in base64: a sixth of its size, and safe in any element.

    Browsers since 2023 unpack it (``DecompressionStream``); what others lack is the moving.
    """
    content = {
        "x": [_axis(axis) for axis in axes[0]],
        "y": [_axis(axis) for axis in axes[1]],
        "charts": _charts(model.charts, model.rows, axes),
        "before": _before(model, axes),
        "rows": _rows(model.rows),
        "styles": {series.number: line_style(series.number) for series in model.series},
        "filters": [_filter(found, model.rows) for found in model.filters],
        "figures": _figures(model.rows),
        "changes": _changes(model.rows),
        "verdicts": VERDICTS,
        **opened(model.rows, families),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def filter_key(name: str) -> str:
    """Return a filter's name as it stands in an address: ``kv-dtype``."""
    return name.lower().replace(" ", "-")


def _axis(axis: Axis) -> dict[str, Any]:
    metric = axis.metric
    return {
        "key": metric.key,
        "title": metric.title,
        "unit": metric.unit,
        "better": metric.better,
        "linear": _placed(axis.linear),
        "log": _placed(axis.log) if axis.log else None,
        "logFirst": axis.log_first,
    }


def _placed(placed: Placed) -> dict[str, Any]:
    found = {"at": placed.at, "ticks": placed.ticks}
    return found | ({"spread": _spread(placed)} if placed.spread else {})


def _spread(placed: Placed) -> list[int]:
    """Return, for each row, how far its interval reaches before and after its place: two numbers a
    row, 0 without one."""
    reaches = []
    for index, at in enumerate(placed.at):
        low, high = placed.spread.get(index, (at or 0, at or 0))
        reaches += [low - (at or 0), high - (at or 0)]
    return reaches


def _charts(charts: Sequence[Chart], rows: Sequence[PointRow], axes: Axes) -> dict[str, Any]:
    """Return each chart's frontiers (numbers of rows, by series) and bands (places, by scale)."""
    numbers = {row.anchor: number for number, row in enumerate(rows)}
    return {
        " ".join(chart.key): {
            "lines": _members(chart, numbers),
            "bands": {number: _band(chart, number, axes) for number in chart.bands},
        }
        for chart in charts
    }


def _members(chart: Chart, numbers: Mapping[str, int]) -> dict[int, list[int]]:
    return {
        number: [numbers[mark.row.anchor] for mark in marks]
        for number, marks in chart.frontiers.items()
    }


def _band(chart: Chart, number: int, axes: Axes) -> dict[str, dict[str, list[int]]]:
    around = band_outline(chart.bands[number])
    x, y = axes_along(axes, chart.key)
    return {
        "x": _along(x, [corner[0] for corner in around]),
        "y": _along(y, [corner[1] for corner in around]),
    }


def _along(axis: Axis, values: Sequence[float]) -> dict[str, list[int]]:
    scales = {"linear": axis.linear, "log": axis.log}
    return {name: [s.place(v) for v in values] for name, s in scales.items() if s}


def _before(model: ReportModel, axes: Axes) -> dict[str, Any]:
    """Return the baseline's frontiers; the numbers of its rows follow the report's own."""
    if model.baseline is None:
        return {}
    first = len(model.rows)
    numbers = {row.anchor: first + n for n, row in enumerate(model.baseline.rows)}
    charts = {" ".join(chart.key): _members(chart, numbers) for chart in model.baseline.charts}
    return {"charts": charts, "valid": [row.valid for row in model.baseline.rows]}


def _rows(rows: Sequence[PointRow]) -> dict[str, list[Any]]:
    return {
        "id": [row.anchor for row in rows],
        "line": [row.series.number for row in rows],
        "valid": [int(row.valid) for row in rows],
        "runs": [row.runs for row in rows],
        "chance": [None if row.chance is None else percent(row.chance) for row in rows],
        "status": ["" if row.valid else _status(row) for row in rows],
        "reused": [row.reused for row in rows],
        "repro": [row.repro for row in rows],
    }


def _status(row: PointRow) -> str:
    return f"{row.record.status} {row.record.status.sentence}".strip()


def _filter(found: Filter, rows: Sequence[PointRow]) -> dict[str, Any]:
    values = list(found.values)
    of = {anchor: n for n, value in enumerate(values) for anchor in found.values[value]}
    return {
        "key": filter_key(found.name), "values": values, "of": [of[row.anchor] for row in rows]
    }  # fmt: skip


def _figures(rows: Sequence[PointRow]) -> list[dict[str, Any]]:
    """Return each metric that a row tells, with its texts by row."""
    return [
        {
            "key": metric.key,
            "title": metric.title,
            "unit": metric.unit,
            "of": [_shown(row.figures.get(metric.key)) for row in rows],
        }
        for metric in METRICS.values()
        if any(metric.key in row.figures for row in rows)
    ]


def _shown(shown: Shown | None) -> str:
    return with_spread(shown.value, shown.low, shown.high) if shown else ""


def _changes(rows: Sequence[PointRow]) -> dict[str, list[str | int]]:
    """Return, for each metric, each row's change since the baseline: in words, 0 where there is
    none; the first character is the number of its verdict in `VERDICTS`."""
    keys = dict.fromkeys(key for row in rows for key in row.baseline)
    return {key: [_change(row.baseline.get(key)) for row in rows] for key in keys}


def _change(change: Change | None) -> str | int:
    if change is None:
        return 0
    words = f"{VERDICTS.index(change.verdict)}{signed(change.ratio - 1)}"
    if change.low is None or change.high is None:
        return words
    return f"{words} [{signed(change.low - 1)}, {signed(change.high - 1)}]"
