"""One chart drawn with matplotlib, at the places that the page's chart has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infx.report.labels import labels_of
from infx.report.model import Baseline, Chart, Mark, PointRow, ReportModel
from infx.report.palette import DASHES, LIGHT, SERIES, shape_of
from infx.report.placing import SPAN, Axis, Place, Placed, band_outline, step_corners
from infx.report.svg import CONC_SHOWN

__all__ = ["draw", "legend_of"]

REUSED = LIGHT["soft"]
"""Grey: a figure that another run measured."""


def draw(panel: Any, chart: Chart, x: Axis, y: Axis, model: ReportModel, *, large: bool) -> None:
    """Draw ``chart``; the places along ``x`` and ``y`` are those of the report's rows, then of its
    baseline's. Only the ``large`` one has bands, intervals, names and concurrencies."""
    across, up = x.first, y.first
    if model.baseline:
        _before(panel, model.baseline, chart, across, up)
    if large:
        _bands(panel, chart, across, up)
        _whiskers(panel, model.rows, across, up)
        _names(panel, chart, across, up)
    for number, marks in chart.frontiers.items():
        _steps(panel, number, marks, chart, across, up)
    _marks(panel, chart, across, up, size=6.5 if large else 3.6)
    _frame(panel, chart, x, y, large=large)


def legend_of(model: ReportModel, most: int) -> list[Any]:
    """Return the legend's entries: the lines (``most`` of them), then the kinds of marks."""
    shown = [_entry(s.label, s.number) for s in model.series[:most]]
    if len(model.series) > most:
        shown.append(_words(f"and {len(model.series) - most} more lines"))
    return [*shown, *_kinds(model)]


def _steps(
    panel: Any, number: int, marks: Sequence[Mark], chart: Chart, x: Placed, y: Placed,
    **style: Any,
) -> None:  # fmt: skip
    places = [(x.place(mark.x), y.place(mark.y)) for mark in marks]
    corners = step_corners(places, across_first=chart.x.better == "less")
    look = {"linewidth": 1.4, "alpha": 0.85, "linestyle": _dash(number), "zorder": 2} | style
    panel.plot(*_columns(corners), color=_colour(number), **look)


def _before(panel: Any, baseline: Baseline, chart: Chart, x: Placed, y: Placed) -> None:
    """Draw the baseline's points and frontiers, small and faint."""
    old = baseline.chart_of(chart.key)
    if old is None:
        return
    for number, marks in old.frontiers.items():
        _steps(panel, number, marks, chart, x, y, linewidth=1.0, alpha=0.4, linestyle=":")
    for mark in old.marks:
        if mark.row.valid:
            number = mark.row.series.number
            panel.plot(
                x.place(mark.x), y.place(mark.y), shape_of(number).marker, color=_colour(number),
                markersize=2.6, alpha=0.35, zorder=1,
            )  # fmt: skip


def _bands(panel: Any, chart: Chart, x: Placed, y: Placed) -> None:
    for number, band in chart.bands.items():
        around = [(x.place(a), y.place(b)) for a, b in band_outline(band)]
        panel.fill(*_columns(around), color=_colour(number), alpha=0.13, linewidth=0, zorder=0)


def _whiskers(panel: Any, rows: Sequence[PointRow], x: Placed, y: Placed) -> None:
    for index, row in enumerate(rows):
        across, up = x.at[index], y.at[index]
        if across is None or up is None:
            continue
        look = {"color": _colour(row.series.number), "linewidth": 0.9, "alpha": 0.7, "zorder": 3}
        if index in x.spread:
            panel.plot(x.spread[index], (up, up), **look)
        if index in y.spread:
            panel.plot((across, across), y.spread[index], **look)


def _marks(panel: Any, chart: Chart, x: Placed, y: Placed, *, size: float) -> None:
    """Draw the marks, those that look alike at once: one by one 500 take seconds."""
    alike: dict[tuple[bool, bool, int, bool, bool], list[Place]] = {}
    for mark in chart.marks:
        row = mark.row
        look = row.valid, mark.on_frontier, row.series.number, row.runs > 1, bool(row.reused)
        alike.setdefault(look, []).append((x.place(mark.x), y.place(mark.y)))
    many = len(chart.marks) > CONC_SHOWN
    for valid, on, number, again, reused in sorted(alike):
        colour = REUSED if reused else _colour(number)
        style = {
            "color": colour,
            "markerfacecolor": colour if valid and again else LIGHT["card"],
            "markeredgewidth": size / 5,
            "markersize": size * (0.75 if many and not on else 1),
            "alpha": 0.45 if many and not on else 1,
        }
        places = _columns(alike[valid, on, number, again, reused])
        panel.plot(*places, shape_of(number).marker, linestyle="", zorder=4 + on, **style)
        if not valid:
            panel.plot(*places, "x", color=LIGHT["bad"], markersize=size * 1.2, zorder=4)


def _names(panel: Any, chart: Chart, x: Placed, y: Placed) -> None:
    """Write the names of few points' lines, and concurrencies (with many points those on frontiers)
    where they do not cover each other."""
    many = len(chart.marks) > CONC_SHOWN
    for label in labels_of(chart, x, y):
        panel.text(
            label.x, label.y, label.text, ha="right" if label.ends else "left", fontsize=8,
            color=_colour(label.number), zorder=6,
        )  # fmt: skip
    taken: list[Place] = []
    for mark in sorted(chart.marks, key=lambda mark: not mark.on_frontier):
        place = x.place(mark.x), y.place(mark.y)
        if (many and not mark.on_frontier) or any(_covers(place, other) for other in taken):
            continue
        taken.append(place)
        panel.annotate(
            f"c{mark.row.record.point.conc}", place, (5, 4),
            textcoords="offset points", fontsize=6.5, color=LIGHT["soft"], zorder=6,
        )  # fmt: skip


def _covers(place: Place, other: Place) -> bool:
    """True when texts beside the two would cover each other."""
    return abs(place[0] - other[0]) < 0.03 * SPAN and abs(place[1] - other[1]) < 0.025 * SPAN


def _frame(panel: Any, chart: Chart, x: Axis, y: Axis, *, large: bool) -> None:
    size = 9 if large else 7.5
    panel.set_xlim(0, SPAN)
    panel.set_ylim(SPAN, 0)
    panel.set_xticks(*_ticks(x.first))
    panel.set_yticks(*_ticks(y.first))
    better = "better →" if x.metric.better == "more" else "← better"
    panel.set_xlabel(f"{_named(x)}   {better}", fontsize=size, color=LIGHT["ink"])
    panel.set_ylabel(_named(y), fontsize=size, color=LIGHT["ink"])
    panel.tick_params(labelsize=size - 1, length=0, colors=LIGHT["soft"])
    panel.grid(color=LIGHT["faint"], linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["left", "bottom"]].set_color(LIGHT["line"])
    if not chart.marks:
        panel.text(0.5, 0.5, "nothing to draw", transform=panel.transAxes, ha="center")


def _ticks(placed: Placed) -> tuple[list[int], list[str]]:
    return [at for at, _ in placed.ticks], [text for _, text in placed.ticks]


def _named(axis: Axis) -> str:
    log = ", log scale" if axis.first.scale.log else ""
    return f"{axis.metric.title} ({axis.metric.unit}{log})"


def _columns(places: Sequence[Place]) -> tuple[list[float], list[float]]:
    return [x for x, _ in places], [y for _, y in places]


def _colour(number: int) -> str:
    return LIGHT[f"c{number % SERIES}"]


def _dash(number: int) -> Any:
    """Return a series' dash as matplotlib takes it."""
    dash = DASHES[number % len(DASHES)]
    return "-" if dash == "none" else (0, tuple(float(n) * 0.7 for n in dash.split()))


def _kinds(model: ReportModel) -> list[Any]:
    """Return what tells marks apart, of the kinds that the charts hold."""
    rows = [row for row in model.rows if row.plotted]
    kinds = {
        "one run": (any(r.runs == 1 for r in rows), {"markerfacecolor": LIGHT["card"]}),
        "repeated": (any(r.runs > 1 for r in rows), {}),
        "reused": (any(r.reused for r in rows), {"color": REUSED}),
        "invalid, never on a frontier": (
            any(not r.valid for r in rows), {"marker": "x", "color": LIGHT["bad"]},
        ),
    }  # fmt: skip
    shown = [_mark_entry(text, **style) for text, (held, style) in kinds.items() if held]
    if model.charts[0].bands:
        shown.append(_area_entry("95 % of the frontier under noise"))
    if model.baseline:
        names = ", ".join(facts.run_id for facts in model.baseline.runs)
        shown.append(_line_entry(f"baseline {names}"))
    return shown


def _entry(label: str, number: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], color=_colour(number), label=label, linestyle=_dash(number),
        marker=shape_of(number).marker, markersize=6,
    )  # fmt: skip


def _mark_entry(label: str, **style: Any) -> Any:
    from matplotlib.lines import Line2D

    plain: dict[str, Any] = {"marker": "o", "color": LIGHT["ink"], "linestyle": ""}
    look = {**plain, "markersize": 6, **style}
    return Line2D([], [], label=label, **look)


def _line_entry(label: str) -> Any:
    return _mark_entry(label, marker="", linestyle=":", color=LIGHT["soft"])


def _area_entry(label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=LIGHT["soft"], alpha=0.2, label=label)


def _words(label: str) -> Any:
    return _mark_entry(label, marker="")
