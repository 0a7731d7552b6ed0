"""The points of a report as Markdown: each line's frontier, what got worse, what does not count."""

from __future__ import annotations

from collections.abc import Sequence

from infx.analysis.changes import Change
from infx.analysis.metrics import METRICS, NORTH_STAR, THROUGHPUT
from infx.report.figures import (
    blank,
    count,
    figure,
    moved_between,
    percent,
    signed,
    with_spread,
)
from infx.report.gates_of_curves import covered
from infx.report.markdown_parts import Cut, bold, folded, safe, table
from infx.report.model import PointRow, ReportModel, Series

__all__ = ["frontiers", "lost", "regressions"]

_SHOWN = (THROUGHPUT.key, NORTH_STAR.key, "interactivity_p90", "ttft_p90", "e2el_p90")
_IF_TOLD = ("usd_per_m_tokens", "j_per_token")
"""Columns that stand only where a point of the line tells them."""

_SINCE = "Since baseline: Throughput, E2E-normalised interactivity"


def frontiers(model: ReportModel, cut: Cut) -> list[str]:
    """Return each line with its frontier, and its other points behind a fold."""
    if not model.rows:
        return ["No throughput point has a record."]
    parts = []
    for series in cut.few(model.series, "lines"):
        rows = [row for row in model.rows if row.series == series and row.plotted]
        parts += [_head(series, model, cut), *_line(rows, model, cut)]
    return [*parts, _legend(model)]


def regressions(model: ReportModel, cut: Cut) -> list[str]:
    """Return every figure that got worse since the baseline, the worst first."""
    pairs = [(row, c) for row in model.rows for c in row.baseline.values() if c.verdict == "worse"]
    if not pairs:
        return []
    pairs.sort(key=lambda pair: -abs(pair[1].ratio - 1))
    rows = [_change(row, change) for row, change in cut.few(pairs, "figures that got worse")]
    heads = ("Point", "Figure", "Before", "Now", "Change", "95 % interval")
    return [folded(f"{count(len(pairs), 'figure')} got worse", [table(heads, rows, cut)])]


def lost(model: ReportModel, cut: Cut) -> list[str]:
    """Return the points, and the repeats of valid ones, that do not count, with the reason."""
    rows = [row for row in model.rows if not row.valid]
    told = [
        (row.record.point.label, str(status), "; ".join(row.faults) or status.sentence)
        for row in cut.few(rows, "points that do not count")
        for status in [row.record.status]
    ]
    repeats = [one for row in model.rows if row.valid for one in row.lost]
    told += [
        (f"{one.point.label}, a repeat", str(one.status), one.status.sentence)
        for one in cut.few(repeats, "repeats that do not count")
    ]
    if not told:
        return []
    return [bold("Points that do not count"), table(("Point", "Status", "Why"), told, cut)]


def _head(series: Series, model: ReportModel, cut: Cut) -> str:
    found = model.coverage.get(series.number)
    told = f"; advice: {found.advised} or more" if found and not found.enough else ""
    words = f"{covered(found)}{told}" if found else ""
    asked = "" if series.workload in series.label else f"({series.workload})"
    return " ".join(
        filter(None, (bold(cut.text(series.label)), safe(cut.text(asked)), safe(words)))
    )


def _line(rows: Sequence[PointRow], model: ReportModel, cut: Cut) -> list[str]:
    if not rows:
        return ["No point of it left figures."]
    rows = sorted(rows, key=_place)
    on = [row for row in rows if row.on_frontier]
    rest = [row for row in rows if not row.on_frontier]
    parts = [_points(on, rows, model, cut)] if on else []
    if rest:
        shown = _points(rest, rows, model, cut)
        parts.append(folded(f"{count(len(rest), 'point')} not on the frontier", [shown]))
    return parts


def _place(row: PointRow) -> float:
    told = row.figures.get(NORTH_STAR.key)
    return told.value if told else 0.0


def _points(
    shown: Sequence[PointRow], line: Sequence[PointRow], model: ReportModel, cut: Cut
) -> str:
    keys = [*_SHOWN, *(key for key in _IF_TOLD if any(key in row.figures for row in line))]
    heads = ["Point", "conc", "Runs", "Requests", *(METRICS[key].label for key in keys)]
    heads += ["Chance"] if any(row.chance is not None for row in line) else []
    heads += [_SINCE] if model.baseline else []
    rows = [_point(row, keys, heads) for row in cut.few(shown, "points")]
    return table([*heads, "Status"], rows, cut)


def _point(row: PointRow, keys: Sequence[str], heads: Sequence[str]) -> list[str]:
    requests = sum(r.measurement.requests.ok for r in row.counted if r.measurement)
    star = "★ " if row.on_frontier else ""
    cells = [f"{star}{row.name}", str(row.record.point.conc), str(row.runs)]
    cells += [f"{requests:,}", *(_shown(row, key) for key in keys)]
    cells += [percent(row.chance)] if "Chance" in heads else []
    cells += [_since(row)] if _SINCE in heads else []
    told = f"reused from {row.reused}" if row.reused and row.valid else str(row.record.status)
    return [*cells, told]


def _shown(row: PointRow, key: str) -> str:
    found = row.figures.get(key)
    return with_spread(found.value, found.low, found.high) if found else blank


def _since(row: PointRow) -> str:
    """Return how throughput, then the deciding figure changed."""
    changes = [row.baseline[m.key] for m in (THROUGHPUT, NORTH_STAR) if m.key in row.baseline]
    told = ", ".join(f"{signed(c.ratio - 1)} {c.verdict.replace('-', ' ')}" for c in changes)
    return told or "new"


def _change(row: PointRow, change: Change) -> Sequence[str]:
    name, moved = row.record.point.label, signed(change.ratio - 1)
    between = moved_between(change.low, change.high)
    return name, change.title, figure(change.a), figure(change.b), moved, between


def _legend(model: ReportModel) -> str:
    told = f"★ is on the deciding frontier ({NORTH_STAR.title} against {THROUGHPUT.title})."
    told += " P90 is the slow tail; of an interactivity it is the slow end."
    if any(row.runs > 1 for row in model.rows):
        told += " In brackets: the 95 % interval of the mean of repeats."
    if any(row.chance is not None for row in model.rows):
        told += " Chance: that of being on the deciding frontier."
    return told
