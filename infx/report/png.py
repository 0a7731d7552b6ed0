"""The charts as one PNG for a pull request, from the same marks as the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infx.report.model import Chart, Mark, ReportModel
from infx.report.palette import LIGHT, SERIES, shape_of
from infx.report.scales import scale_for

__all__ = ["write_png"]


def write_png(model: ReportModel, path: Path) -> None:
    """Draw one panel a view, side by side, to ``path``. Needs matplotlib (``infx[png]``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * len(model.charts), 4.9), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(model.charts), squeeze=False)[0]
    for panel, chart in zip(panels, model.charts, strict=True):
        _draw(panel, chart)
    if model.series:
        figure.legend(
            handles=_legend(model), loc="outside lower center", ncols=2, frameon=False, fontsize=8
        )
    figure.suptitle(model.verdict, fontsize=10, wrap=True)
    figure.savefig(path)


def _draw(panel: Any, chart: Chart) -> None:
    for number, line in chart.frontiers.items():
        _steps(panel, chart, line, _colour(number))
    for mark in chart.marks:
        _mark(panel, mark)
    _axes(panel, chart)


def _steps(panel: Any, chart: Chart, line: Sequence[Mark], colour: str) -> None:
    where = "pre" if chart.view.x_direction == "max" else "post"
    xs, ys = [mark.x for mark in line], [mark.y for mark in line]
    panel.step(xs, ys, where=where, color=colour, linewidth=1.2, alpha=0.75)


def _mark(panel: Any, mark: Mark) -> None:
    number = mark.row.series.number
    colour, shape = _colour(number), shape_of(number).marker
    fill = colour if mark.row.valid and mark.row.runs > 1 else "white"
    panel.plot(mark.x, mark.y, shape, color=colour, markerfacecolor=fill, markersize=7)
    if not mark.row.valid:
        panel.plot(mark.x, mark.y, "x", color=LIGHT["bad"], markersize=10)
    panel.annotate(
        f"c{mark.row.record.point.conc}", (mark.x, mark.y), (6, 5),
        textcoords="offset points", fontsize=7, color=LIGHT["soft"],
    )  # fmt: skip


def _axes(panel: Any, chart: Chart) -> None:
    x, y = (scale_for([value(m) for m in chart.marks], 0, 1) for value in (_across, _up))
    for scale, name in ((x, "x"), (y, "y")):
        getattr(panel, f"set_{name}scale")("log" if scale.log else "linear")
        getattr(panel, f"set_{name}lim")(scale.low, scale.high)
        getattr(panel, f"set_{name}ticks")(scale.ticks(), [f"{t:g}" for t in scale.ticks()])
        getattr(panel, f"{name}axis").set_minor_locator(_no_ticks())
    panel.set_xlabel(f"{chart.view.x_label} ({chart.view.x_unit})", fontsize=9)
    panel.set_ylabel("Total throughput (tok/s/GPU)", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.grid(color=LIGHT["faint"], linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    if not chart.marks:
        panel.text(0.5, 0.5, "nothing to draw", transform=panel.transAxes, ha="center")


def _colour(number: int) -> str:
    return LIGHT[f"c{number % SERIES}"]


def _across(mark: Mark) -> float:
    return mark.x


def _up(mark: Mark) -> float:
    return mark.y


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _legend(model: ReportModel) -> list[Any]:
    from matplotlib.lines import Line2D

    shown = [
        Line2D(
            [], [], linestyle="", marker=shape_of(series.number).marker,
            color=_colour(series.number), label=series.label,
        )
        for series in model.series
    ]  # fmt: skip
    cross = Line2D([], [], linestyle="", marker="x", color=LIGHT["bad"], label="invalid")
    hollow = Line2D(
        [],
        [],
        linestyle="",
        marker="o",
        color=LIGHT["soft"],
        markerfacecolor="white",
        label="one run",
    )
    return [*shown, hollow, cross]
