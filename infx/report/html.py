"""The report as one HTML file: no network, no library, readable without scripts."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from infx.analysis.changes import VERDICTS
from infx.analysis.metrics import METRICS
from infx.report import figures, palette, svg
from infx.report.columns import columns_of, origin
from infx.report.embedded import embedded, filter_key
from infx.report.families import Column, Family, Word, families_of
from infx.report.model import ArmDetails, Baseline, PointRow, ReportModel, Series
from infx.report.placing import Axes, axes_of

__all__ = ["html", "write_html"]

PARTS = ("state.js", "chart.js", "card.js", "opened.js", "table.js", "page.js")
"""The page's script, in the order of its parts."""

LISTED = 60
"""Points that came, went or could not be compared since the baseline are listed up to here."""

KINDS = {
    "one": "one run",
    "many": "repeated",
    "reused": "grey: reused from another run",
    "invalid": "invalid, never on a frontier",
}


def html(model: ReportModel, pages: Mapping[str, str] | None = None) -> str:
    """Return the page. Every text from a record or a plan is escaped.

    ``pages`` are the addresses of the reports of runs that points are reused from, by run.
    """
    environment = _environment()
    axes, families = axes_of(model), families_of(model.arms)
    homes = {arm.arm.arm_id: family.anchor for family in families for arm in family.arms}
    return environment.get_template("report.html.j2").render(
        model=model, axes=axes, families=families, homes=homes, palette=palette, metrics=METRICS,
        style=Markup(environment.get_template("report.css").render(palette=palette)),
        script=Markup(_script(environment)),
        data=Markup(embedded(model, axes, families)),
        svg=_chart(model, axes),
        symbols=Markup(svg.symbols({0, *(series.number for series in model.series)})),
        groups=_groups(model),
        columns=columns_of(model.rows, homes, pages or {}), pages=pages or {},
        numbers={row.anchor: number for number, row in enumerate(model.rows)},
        kinds=_kinds(model.rows),
        listed=LISTED,
        verdicts=VERDICTS,
        repeated=any(row.runs > 1 for row in model.rows),
        chances=any(row.chance is not None for row in model.rows),
    )  # fmt: skip


def write_html(model: ReportModel, path: Path) -> None:
    """Write the page to ``path`` (UTF-8)."""
    path.write_text(html(model, _pages(model, path)), encoding="utf-8")


def _pages(model: ReportModel, path: Path) -> dict[str, str]:
    """Return the reports of the runs that points are reused from, as seen from ``path``."""
    there = {run: folder / "report.html" for run, folder in model.origins.items()}
    seen = {run: os.path.relpath(page, path.parent) for run, page in there.items() if page.exists()}
    return {run: quote(page) for run, page in seen.items()}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("infx.report"),
        autoescape=lambda name: not (name or "").endswith((".css", ".js")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=figures.percent,
        signed=figures.signed,
        values=figures.values,
        clock=figures.clock,
        duration=figures.duration,
        filter_key=filter_key,
        digest=_digest,
        told=_told,
        origin=origin,
        gap=_gap,
        quoted=shlex.quote,
        points_of=_points_of,
        contradictions=_contradictions,
        not_of_lines=_not_of_lines,
    )
    environment.globals.update(badge=_badge, key_badge=_key_badge, count=figures.count)
    return environment


def _script(environment: Environment) -> str:
    """Return the parts as one script with a scope of its own."""
    assert environment.loader
    parts = [environment.loader.get_source(environment, name)[0] for name in PARTS]
    return f'"use strict";\n(async () => {{\n{"".join(parts)}\n}})();'


def _digest(text: str) -> str:
    """Return what a Content-Security-Policy names an inline style or script by."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"


def _chart(model: ReportModel, axes: Axes) -> Markup:
    chart = model.charts[0]
    if not chart.marks:
        return Markup("")
    return Markup(svg.chart_svg(chart, axes[0][0], axes[1][0], model.rows, model.baseline))


def _groups(model: ReportModel) -> list[tuple[Series, list[PointRow]]]:
    """Return the rows of each series, so that its name stands once."""
    pairs = [(s, [row for row in model.rows if row.series == s]) for s in model.series]
    return [(series, rows) for series, rows in pairs if rows]


def _kinds(rows: Sequence[PointRow]) -> list[tuple[str, str]]:
    """Return the kinds of marks that the chart holds, with what they mean."""
    held = {name for row in rows if row.plotted for name in svg.classes(row).split()}
    return [(kind, text) for kind, text in KINDS.items() if kind in held]


def _badge(series: Series) -> Markup:
    """Return the shape of a series and the dash of its frontier, as legend and table show them."""
    colour, dash = series.number % palette.SERIES, series.number % len(palette.DASHES)
    shape = series.number % len(palette.SHAPES)
    return Markup(
        f'<svg class="badge many s{colour}" viewBox="-15 -8 30 16" width="26" height="14" '
        f'aria-hidden="true"><path class="frontier d{dash}" d="M-15 0H15"/>'
        f'<use href="#m{shape}"/></svg>'
    )


def _key_badge(kind: str) -> Markup:
    cross = '<use class="cross" href="#cross"/>' if kind == "invalid" else ""
    shape = '<use href="#m0"/>'
    return Markup(
        f'<svg class="badge mark {kind}" viewBox="-8 -8 16 16" width="14" height="14" '
        f'aria-hidden="true">{shape}{cross}</svg>'
    )


def _told(template: Iterable[Word], columns: Sequence[Column | str]) -> list[tuple[str, bool]]:
    """Return each word of a command with whether it is the name of what varies."""
    names = [column if isinstance(column, str) else column.name for column in columns]
    return [(names[w], True) if isinstance(w, int) else (w, False) for w in template]


def _gap(word: str) -> Markup:
    """Return what stands before a word: an option begins a line of its own."""
    return Markup(" \\\n  " if word.startswith("--") else " ")


def _points_of(arm: ArmDetails) -> str:
    names = dict.fromkeys(record.point.name for record in arm.records)
    return ", ".join(name.removeprefix(f"{arm.title}-") for name in names)


def _contradictions(family: Family) -> list[str]:
    """Return the axes that a server runs otherwise than planned, each case once."""
    return list(
        dict.fromkeys(
            f"{axis.name}: planned {axis.planned}, running {axis.running}"
            for arm in family.arms
            for axis in arm.axes
            if axis.differs
        )
    )


def _not_of_lines(baseline: Baseline) -> list[str]:
    """Return the sentences but those on lines, which follow the headline: a table tells them."""
    headline, *rest = baseline.sentences
    return [headline, *rest[len(baseline.lines) :]]
