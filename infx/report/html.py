"""The report as one HTML file: no network, no library, readable without scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from infx.analysis.pareto import NORTH_STAR
from infx.domain.codes import CODES
from infx.domain.record import EngineCounters
from infx.report import figures, palette, svg
from infx.report.model import Chart, PointRow, ReportModel, Series

__all__ = ["html", "write_html"]


def html(model: ReportModel) -> str:
    """Return the page. Every text from a record or a plan is escaped."""
    template = _environment().get_template("report.html.j2")
    return template.render(
        model=model, north_star=NORTH_STAR.key, codes=CODES, palette=palette, groups=_groups(model)
    )


def write_html(model: ReportModel, path: Path) -> None:
    """Write the page to ``path`` (UTF-8)."""
    path.write_text(html(model), encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("infx.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        figure=figures.figure,
        percent=figures.percent,
        plain=figures.plain,
        values=figures.values,
        clock=figures.clock,
        duration=figures.duration,
        command=figures.command,
        indented=_indented,
        mono=_mono,
        most=_most,
    )
    environment.globals.update(chart_svg=_chart, badge=_badge, count=figures.count)
    return environment


def _chart(chart: Chart) -> Markup:
    """Return the chart twice: a style sheet shows the one that fits the screen."""
    return Markup(svg.chart_svg(chart) + svg.chart_svg(chart, svg.NARROW))


def _groups(model: ReportModel) -> list[tuple[Series, list[PointRow]]]:
    """Return the rows of each series, so that its name stands once."""
    pairs = [(s, [row for row in model.rows if row.series == s]) for s in model.series]
    return [(series, rows) for series, rows in pairs if rows]


def _badge(series: Series) -> Markup:
    """Return the shape of a series as it stands in the table."""
    path = svg.shape_path(series.number, 8, 8, 5)
    colour = series.number % palette.SERIES
    return Markup(
        f'<svg class="badge mark many s{colour}" viewBox="0 0 16 16" width="13" '
        f'height="13" aria-hidden="true"><path d="{path}"/></svg>'
    )


def _mono(counters: EngineCounters | None) -> str:
    """Return what mono served of a point that claims it."""
    if counters is None or counters.mono_share is None:
        return "mono: the engine does not tell what it served"
    if counters.mono_coverage is None:
        return "mono: no decode step was eligible"
    coverage, share = map(figures.percent, (counters.mono_coverage, counters.mono_share))
    return f"mono served {coverage} of its eligible steps, {share} of all decode steps"


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the counts, the largest first."""
    return Counter(counts).most_common()


def _indented(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str, ensure_ascii=False)
