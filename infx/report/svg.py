"""The chart as SVG: drawn here, so that it prints, works without scripts and can be tested.

The plot has no view box: places are percentages of whatever size the page gives it, so that marks
and text keep theirs on every screen. Ticks and titles stand outside it, in the page's margin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from infx.report.figures import figure
from infx.report.labels import Label, labels_of
from infx.report.model import Baseline, Chart, Mark, PointRow
from infx.report.palette import SERIES, SHAPES, line_style, shape_of
from infx.report.placing import SPAN, Axis, Place, Placed, band_outline, step_corners

__all__ = ["CONC_SHOWN", "chart_svg", "classes", "describe", "line_path", "shape_path", "symbols"]

CONC_SHOWN = 60
"""With more marks their concurrencies beside them would hide the chart."""

ALL_CONC = 24
"""With more marks only those on the frontier show their concurrency."""

RADIUS = 5.5
"""Of a mark, in pixels."""

SMALL = 3.2
"""Of a mark of the baseline."""


def chart_svg(
    chart: Chart, x: Axis, y: Axis, rows: Sequence[PointRow], baseline: Baseline | None = None
) -> str:
    """Return the chart as one ``<svg>`` element, every text escaped.

    The places along ``x`` and ``y`` are those of ``rows``, then of the baseline's rows.
    """
    across, up = x.first, y.first
    numbers = {row.anchor: number for number, row in enumerate(rows)}
    marks = sorted(chart.marks, key=_paint_order)
    indexed = [(numbers[mark.row.anchor], mark) for mark in marks]
    parts = [
        f"<title>{escape(y.metric.title)} against {escape(x.metric.title)}</title>",
        f"<desc>{escape(_summary(chart))}</desc>",
        *_grid(across, up),
        _lines(chart, across, up, baseline, [n for n, _ in indexed]),
        _ghosts(baseline, len(rows), across, up),
        f'<g class="marks">{"".join(_mark(n, m, chart, across, up) for n, m in indexed)}</g>',
        f'<g class="labels">{"".join(map(_label, labels_of(chart, across, up)))}</g>',
    ]
    crowd = " dense" if len(marks) > CONC_SHOWN else " crowded" if len(marks) > ALL_CONC else ""
    return f'<svg id="plot" class="plot{crowd}" role="group" tabindex="-1">{"".join(parts)}</svg>'


def describe(mark: Mark, chart: Chart) -> str:
    """Return what a reader learns of a point without scripts, one fact a line."""
    row = mark.row
    lines = [
        row.record.point.name,
        f"{figure(mark.y)} {chart.y.unit} · {figure(mark.x)} {chart.x.unit}",
    ]
    if not row.valid:
        lines.append(f"{row.record.status} {row.record.status.sentence}".strip())
    elif mark.on_frontier:
        lines.append("on the frontier")
    if row.valid and row.runs == 1:
        lines.append("one run")
    if row.reused:
        lines.append(f"reused from {row.reused}")
    return "\n".join(lines)


def classes(row: PointRow) -> str:
    """Return what tells kinds of marks apart: crossed, grey, hollow, full; colour and dash."""
    kind = "one" if row.runs <= 1 else "many"
    kind = kind if row.valid else "invalid"
    return f"{kind} {'reused ' if row.reused else ''}s{row.series.number % SERIES}"


def shape_path(number: int, size: float) -> str:
    """Return the path of series ``number``'s shape around the origin."""
    corners = shape_of(number).corners
    if not corners:
        half = f"a{size:g} {size:g} 0 1 0"
        return f"M{-size:g} 0{half} {2 * size:g} 0{half} {-2 * size:g} 0z"
    return f"M{'L'.join(f'{dx * size:.1f} {dy * size:.1f}' for dx, dy in corners)}z"


def symbols(numbers: Iterable[int]) -> str:
    """Return the shapes that marks use, each once, with room around it for a pointer."""
    wanted = sorted({number % len(SHAPES) for number in numbers})
    shapes = "".join(
        f'<g id="m{n}"><circle r="11" fill="transparent" stroke="none"/>'
        f'<path d="{shape_path(n, RADIUS)}"/></g><path id="g{n}" d="{shape_path(n, SMALL)}"/>'
        for n in wanted
    )
    cross = '<path id="cross" d="M-7.5-7.5L7.5 7.5M-7.5 7.5L7.5-7.5"/>'
    return f'<svg class="hide" aria-hidden="true"><defs>{shapes}{cross}</defs></svg>'


def line_path(places: Sequence[Place]) -> str:
    """Return the path through ``places``."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places) if places else ""


def _summary(chart: Chart) -> str:
    valid = sum(mark.row.valid for mark in chart.marks)
    on = sum(mark.on_frontier for mark in chart.marks)
    return (
        f"{len(chart.marks)} points, {valid} of them valid, {on} on a frontier. Across: "
        f"{chart.x.label}, {chart.x.better} is better. Up: {chart.y.label}, {chart.y.better} is "
        "better. The table of points holds the same figures."
    )


def _share(place: int) -> str:
    return f"{place / SPAN:.2%}"


def _grid(x: Placed, y: Placed) -> list[str]:
    across = "".join(
        f'<line x1="{_share(at)}" x2="{_share(at)}" y2="100%"/>'
        f'<text x="{_share(at)}" y="100%" dy="17">{text}</text>'
        for at, text in x.ticks
    )
    up = "".join(
        f'<line x2="100%" y1="{_share(at)}" y2="{_share(at)}"/>'
        f'<text y="{_share(at)}" dx="-9" dy="4">{text}</text>'
        for at, text in y.ticks
    )
    return [
        f'<g class="grid x">{across}</g><g class="grid y">{up}</g>',
        '<line class="axis" y2="100%"/><line class="axis" x2="100%" y1="100%" y2="100%"/>',
    ]


def _lines(
    chart: Chart, x: Placed, y: Placed, baseline: Baseline | None, indices: Sequence[int]
) -> str:
    """Return bands, frontiers and whiskers in a box of `SPAN` by `SPAN`, stretched to the plot."""
    old = baseline.chart_of(chart.key) if baseline else None
    before = old.frontiers if old else {}
    parts = [
        *(_band(number, chart, x, y) for number in chart.bands),
        *(_frontier(number, marks, chart, x, y, "before") for number, marks in before.items()),
        *(
            _frontier(number, marks, chart, x, y, "frontier")
            for number, marks in chart.frontiers.items()
        ),
        _whiskers(indices, x, y),
    ]
    box = f'viewBox="0 0 {SPAN} {SPAN}" preserveAspectRatio="none"'
    return f'<svg class="lines" {box} aria-hidden="true">{"".join(parts)}</svg>'


def _frontier(
    number: int, marks: Sequence[Mark], chart: Chart, x: Placed, y: Placed, kind: str
) -> str:
    places = [(x.place(mark.x), y.place(mark.y)) for mark in marks]
    corners = step_corners(places, across_first=chart.x.better == "less")
    return (
        f'<path class="{kind} {line_style(number)}" data-line="{number}" d="{line_path(corners)}"/>'
    )


def _band(number: int, chart: Chart, x: Placed, y: Placed) -> str:
    outline = band_outline(chart.bands[number])
    path = line_path([(x.place(a), y.place(b)) for a, b in outline])
    return f'<path class="band s{number % SERIES}" data-line="{number}" d="{path}z"/>'


def _paint_order(mark: Mark) -> tuple[bool, bool]:
    return mark.row.valid, mark.on_frontier


def _whiskers(indices: Iterable[int], x: Placed, y: Placed) -> str:
    """Return the path of the intervals over repeats, along x and along y."""
    parts = []
    for index in indices:
        across, up = x.at[index], y.at[index]
        if index in x.spread and up is not None:
            low, high = x.spread[index]
            parts.append(f"M{low} {up}H{high}")
        if index in y.spread and across is not None:
            low, high = y.spread[index]
            parts.append(f"M{across} {low}V{high}")
    return f'<path class="whiskers" d="{"".join(parts)}"/>'


def _ghosts(baseline: Baseline | None, first: int, x: Placed, y: Placed) -> str:
    """Return the baseline's points: small and faint, behind the report's own."""
    groups: dict[int, list[str]] = {}
    for index, row in enumerate(baseline.rows if baseline else (), first):
        across, up = x.at[index], y.at[index]
        if across is not None and up is not None and row.valid:
            groups.setdefault(row.series.number, []).append(
                f'<use href="#g{row.series.number % len(SHAPES)}" data-i="{index}" '
                f'x="{_share(across)}" y="{_share(up)}"/>'
            )
    told = "".join(f'<g class="s{n % SERIES}">{"".join(g)}</g>' for n, g in groups.items())
    return f'<g class="ghosts" aria-hidden="true">{told}</g>'


def _mark(index: int, mark: Mark, chart: Chart, x: Placed, y: Placed) -> str:
    across, up = x.at[index], y.at[index]
    assert across is not None
    assert up is not None
    row = mark.row
    cross = "" if row.valid else '<use class="cross" href="#cross"/>'
    conc = f'<text dx="9" dy="-7">c{row.record.point.conc}</text>'
    front = " front" if mark.on_frontier else ""
    shape = f'<use href="#m{row.series.number % len(SHAPES)}"/>'
    return (
        f'<a class="mark {classes(row)}{front}" href="#row-{row.anchor}" data-i="{index}">'
        f"<title>{escape(describe(mark, chart))}</title>"
        f'<svg x="{_share(across)}" y="{_share(up)}">'
        f"{shape}{cross}{conc if len(chart.marks) <= CONC_SHOWN else ''}</svg></a>"
    )


def _label(label: Label) -> str:
    ends = ' text-anchor="end"' if label.ends else ""
    return (
        f'<text class="s{label.number % SERIES}"{ends} x="{_share(label.x)}" '
        f'y="{_share(label.y)}">{escape(label.text)}</text>'
    )
