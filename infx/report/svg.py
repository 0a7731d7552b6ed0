"""A chart as SVG: drawn here, so that it prints, works without scripts and can be tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from infx.report.figures import count, figure
from infx.report.model import Chart, Mark
from infx.report.palette import SERIES, shape_of
from infx.report.scales import Scale, scale_for

__all__ = ["NARROW", "WIDE", "Frame", "chart_svg", "describe", "shape_path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where a chart is drawn, in pixels: its size and the edges of its axes."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


WIDE = Frame(width=960, height=440, left=66, right=940, top=16, bottom=392)

NARROW = Frame(width=480, height=400, left=62, right=470, top=14, bottom=352)
"""For small screens, where the wide chart would shrink its text to half."""

CHARACTER = 7.4
"""Mean width of a character of a label in pixels, for keeping labels inside the chart."""


def chart_svg(chart: Chart, frame: Frame = WIDE) -> str:
    """Return the chart as one ``<svg>`` element, every text escaped.

    Only the wide chart holds the text of each mark; the page's script shares it.
    """
    x = scale_for([mark.x for mark in chart.marks], frame.left, frame.right)
    y = scale_for([mark.y for mark in chart.marks], frame.bottom, frame.top)
    parts = [
        *_grid(chart, frame, x, y),
        *(_frontier(chart, number, x, y) for number in chart.frontiers),
        *_concurrencies(chart.marks, x, y),
        *(_mark(mark, chart, frame, x, y) for mark in sorted(chart.marks, key=_paint_order)),
        *_labels(chart, frame, x, y),
    ]
    title = f"Throughput per GPU against {chart.view.x_label}"
    return (
        f'<svg class="{"wide" if frame == WIDE else "narrow"}" '
        f'viewBox="0 0 {frame.width} {frame.height}" role="group" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def describe(mark: Mark, chart: Chart) -> str:
    """Return what a reader learns of a point: the text of its card, one fact a line."""
    point, status = mark.row.record.point, mark.row.record.status
    lines = [
        f"{mark.row.series.label} · c{point.conc}",
        f"{figure(mark.y)} tok/s/GPU",
        f"{figure(mark.x)} {chart.view.x_unit} {chart.view.x_label}",
        f"over {count(_requests(mark), 'request')}",
        f"{status} {status.sentence}".strip(),
    ]
    if mark.on_frontier:
        lines.append("on the frontier")
    if mark.row.valid and mark.row.runs == 1:
        lines.append("one run")
    return "\n".join(lines)


def _requests(mark: Mark) -> int:
    measured = mark.row.record.measurement
    return measured.requests.ok if measured else 0


def shape_path(number: int, x: float, y: float, size: float) -> str:
    """Return the path of series ``number``'s shape around (x, y)."""
    corners = shape_of(number).corners
    if not corners:
        half = f"a{size} {size} 0 1 0"
        return f"M{x - size:.1f} {y}{half} {2 * size} 0{half} {-2 * size} 0z"
    around = (f"{x + dx * size:.1f} {y + dy * size:.1f}" for dx, dy in corners)
    return f"M{'L'.join(around)}z"


def _grid(chart: Chart, frame: Frame, x: Scale, y: Scale) -> list[str]:
    left, right, top, bottom = frame.left, frame.right, frame.top, frame.bottom
    parts = [f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>']
    for tick in x.ticks():
        at = x.pixel(tick)
        parts.append(f'<path class="grid" d="M{at} {top}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 17}">{_tick(tick)}</text>')
    for tick in y.ticks():
        at = y.pixel(tick)
        parts.append(f'<path class="grid" d="M{left} {at}H{right}"/>')
        parts.append(f'<text class="tick end" x="{left - 8}" y="{at + 4}">{_tick(tick)}</text>')
    return [*parts, *_axis_titles(chart, frame, x, y)]


def _axis_titles(chart: Chart, frame: Frame, x: Scale, y: Scale) -> list[str]:
    better = "→ better" if chart.view.x_direction == "max" else "← better"
    across = f"{chart.view.x_label} ({chart.view.x_unit}{_log(x)})  {better}"
    up = f"Total throughput (tok/s/GPU{_log(y)})  → better"
    centre, middle = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    return [
        f'<text class="name" x="{centre}" y="{frame.height - 8}">{escape(across)}</text>',
        f'<text class="name" transform="translate(14 {middle}) rotate(-90)">{escape(up)}</text>',
    ]


def _log(scale: Scale) -> str:
    return ", log scale" if scale.log else ""


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _frontier(chart: Chart, number: int, x: Scale, y: Scale) -> str:
    """Draw the edge of what the series' frontier dominates: steps, nothing interpolated."""
    corners = [(x.pixel(mark.x), y.pixel(mark.y)) for mark in chart.frontiers[number]]
    path = f"M{corners[0][0]} {corners[0][1]}"
    for across, up in corners[1:]:
        first = f"V{up}H{across}" if chart.view.x_direction == "max" else f"H{across}V{up}"
        path += first
    return f'<path class="frontier s{number % SERIES}" d="{path}"/>'


def _paint_order(mark: Mark) -> tuple[bool, bool]:
    return mark.row.valid, mark.on_frontier


def _mark(mark: Mark, chart: Chart, frame: Frame, x: Scale, y: Scale) -> str:
    row, across, up = mark.row, x.pixel(mark.x), y.pixel(mark.y)
    size = 6.5 if mark.on_frontier else 5
    kind = "one" if row.runs <= 1 else "many"
    shape = f'<path d="{shape_path(row.series.number, across, up, size)}"/>'
    if not row.valid:
        kind = "invalid"
        shape += f'<path class="cross" d="{_cross(across, up, size + 2.5)}"/>'
    told = f"<title>{escape(describe(mark, chart))}</title>" if frame == WIDE else ""
    name = "" if told else f' aria-label="c{row.record.point.conc}"'
    return (
        f'<a class="mark {kind} s{row.series.number % SERIES}" href="#row-{row.anchor}" '
        f'data-point="{row.anchor}"{name}>{told}'
        f'<circle class="hit" cx="{across}" cy="{up}" r="13"/>{shape}</a>'
    )


def _cross(x: float, y: float, reach: float) -> str:
    left, right, top, bottom = (f"{v:.1f}" for v in (x - reach, x + reach, y - reach, y + reach))
    return f"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"


def _concurrencies(marks: Sequence[Mark], x: Scale, y: Scale) -> list[str]:
    """Write each point's concurrency beside it; with many points they would hide the chart."""
    if len(marks) > 60:
        return []
    return [
        f'<text class="conc" x="{x.pixel(mark.x) + 9:.1f}" y="{y.pixel(mark.y) - 8:.1f}">'
        f"c{mark.row.record.point.conc}</text>"
        for mark in marks
    ]


def _labels(chart: Chart, frame: Frame, x: Scale, y: Scale) -> list[str]:
    """Name each series beside its highest point, where the name covers neither mark nor name."""
    highest: dict[int, Mark] = {}
    for mark in sorted(chart.marks, key=lambda mark: (mark.row.valid, mark.y)):
        highest[mark.row.series.number] = mark
    taken = [_box(x.pixel(mark.x) - 10, 44, y.pixel(mark.y)) for mark in chart.marks]
    parts = []
    for number, mark in sorted(highest.items()):
        text = mark.row.series.label
        width = len(text) * CHARACTER
        left = max(frame.left + 4, min(x.pixel(mark.x) + 34, frame.right - width))
        box = _free(_box(left, width, y.pixel(mark.y) - 8), taken, frame)
        taken.append(box)
        at = f'x="{left:.1f}" y="{box[2]:.1f}"'
        parts.append(f'<text class="label s{number % SERIES}" {at}>{escape(text)}</text>')
    return parts


Box = tuple[float, float, float]
"""Left, right and base line of a piece of text, one line high."""


def _box(left: float, width: float, base: float) -> Box:
    return left, left + width, base


def _free(box: Box, taken: Sequence[Box], frame: Frame) -> Box:
    """Return the box at the nearest height where it covers nothing that is taken."""
    left, right, base = box
    for offset in sorted(range(-240, 241, 16), key=abs):
        inside = frame.top + 10 <= base + offset <= frame.bottom - 4
        if inside and not any(_overlap((left, right, base + offset), other) for other in taken):
            return left, right, base + offset
    return box


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < 15
