"""The charts as one PNG for a pull request's comment, from the places that the page draws at.

The deciding chart is large, the other views of throughput stand below it. Made for a width of
1,000 pixels and drawn at twice that.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infx.report.model import DECIDING, Chart, ReportModel
from infx.report.palette import LIGHT
from infx.report.placing import axes_along, axes_of
from infx.report.png_panel import draw, legend_of

__all__ = ["views", "write_png"]

WIDTH_IN, LARGE_IN, SMALL_IN, DPI = 10.0, 4.9, 2.5, 200

LINE_IN = 0.2
"""Height of a line of text."""

LINES_TOLD = 12
"""Lines of the legend: with more the page tells the rest."""


def write_png(model: ReportModel, path: Path) -> None:
    """Draw the deciding chart and the other views to ``path``. Needs matplotlib (``infx[png]``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    handles = legend_of(model, LINES_TOLD)
    verdict = textwrap.fill(model.verdict, 118, max_lines=3)
    heights = _heights(model, lines=-(-len(handles) // 3), told=verdict.count("\n") + 1)
    figure = Figure(
        figsize=(WIDTH_IN, sum(heights)), layout="constrained", dpi=DPI, facecolor=LIGHT["card"]
    )
    FigureCanvasAgg(figure)
    figure.suptitle(
        verdict, fontsize=10, x=0.01, ha="left", color=LIGHT[model.level], weight="bold"
    )
    axes = axes_of(model)
    for panel, chart, large in _panels(figure, model, heights):
        draw(panel, chart, *axes_along(axes, chart.key), model, large=large)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8,
        labelcolor=LIGHT["ink"],
    )  # fmt: skip
    figure.savefig(path)


def views(model: ReportModel) -> list[Chart]:
    """Return the other views: the charts of the metric that decides upwards, against others."""
    return [chart for chart in model.charts[1:] if chart.y.key == DECIDING[1]]


def _heights(model: ReportModel, *, lines: int, told: int) -> list[float]:
    small = [SMALL_IN] if views(model) else []
    return [LARGE_IN, *small, LINE_IN * (lines + told + 1)]


def _panels(
    figure: Any, model: ReportModel, heights: Sequence[float]
) -> list[tuple[Any, Chart, bool]]:
    below = views(model)
    rows, columns = (2, len(below)) if below else (1, 1)
    grid = figure.add_gridspec(rows, columns, height_ratios=heights[:rows])
    large = (figure.add_subplot(grid[0, :]), model.charts[0], True)
    small = [(figure.add_subplot(grid[1, n]), chart, False) for n, chart in enumerate(below)]
    return [large, *small]
