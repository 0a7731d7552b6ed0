"""Names of the lines beside them in the chart, where they cover neither mark nor name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from infx.report.model import Chart, Mark
from infx.report.placing import SPAN, Placed, step_corners

__all__ = ["LINES_NAMED", "Label", "labels_of"]

LINES_NAMED = 6
"""With more lines their names would hide the chart: the legend tells them."""

MARKS_NAMED = 60
"""With more marks a name finds no place beside its line."""

WIDTH, HEIGHT = 860, 400
"""Size in pixels that names are laid out for; a narrow screen does without them."""

CHARACTER = 7.2
"""Mean width of a character of a name in pixels."""

LINE = 15
"""Height of a line of text in pixels."""

Box = tuple[float, float, float]
"""Left, right and base line of a piece of text, one line high, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The name of series ``number``: in the left half from the place (x, y) on, in the right half
    up to it, so that it stays inside a narrower chart."""

    number: int
    text: str
    x: int
    y: int

    @property
    def ends(self) -> bool:
        """True when the place is where the name ends."""
        return self.x > SPAN / 2


def labels_of(chart: Chart, x: Placed, y: Placed) -> list[Label]:
    """Return a name for each line, near its highest point; none at all where one finds no place."""
    if len(chart.marks) > MARKS_NAMED:
        return []
    places = [(x.place(m.x) / SPAN * WIDTH, y.place(m.y) / SPAN * HEIGHT) for m in chart.marks]
    highest: dict[int, tuple[Mark, float, float]] = {}
    for mark, (across, up) in zip(chart.marks, places, strict=True):
        key = mark.row.series.number
        if mark.row.valid and (key not in highest or up < highest[key][2]):
            highest[key] = (mark, across, up)
    if len(highest) > LINES_NAMED:
        return []
    taken = [(across - 10, across + 34, up) for across, up in places]
    taken += [(across + 7, across + 34, up - 8) for across, up in places]  # its concurrency
    taken += [box for line in chart.frontiers.values() for box in _along(line, chart, x, y)]
    named = [_label(number, *highest[number], taken) for number in sorted(highest)]
    return [label for label in named if label] if all(named) else []


def _label(number: int, mark: Mark, across: float, up: float, taken: list[Box]) -> Label | None:
    text = mark.row.series.label
    width = len(text) * CHARACTER
    left = max(6, min(across + 36, WIDTH - width))
    box = _free((left, left + width, up - 6), taken)
    if box is None:
        return None
    taken.append(box)
    return Label(
        number=number,
        text=text,
        x=round((left + width if left + width / 2 > WIDTH / 2 else left) / WIDTH * SPAN),
        y=round(box[2] / HEIGHT * SPAN),
    )


def _along(line: Sequence[Mark], chart: Chart, x: Placed, y: Placed) -> Iterable[Box]:
    """Yield boxes that cover a frontier's steps."""
    places = [(x.place(m.x) / SPAN * WIDTH, y.place(m.y) / SPAN * HEIGHT) for m in line]
    for a, b in pairwise(step_corners(places, across_first=chart.x.better == "less")):
        low, high = sorted((a[1], b[1]))
        for up in range(round(low), round(high) + 1, LINE):
            yield min(a[0], b[0]) - 3, max(a[0], b[0]) + 3, up + 4


def _free(box: Box, taken: Sequence[Box]) -> Box | None:
    """Return the box at the nearest height where it covers nothing that is taken, if there is."""
    left, right, base = box
    for offset in sorted(range(-112, 113, 16), key=abs):
        inside = 12 <= base + offset <= HEIGHT - 6
        if inside and not any(_overlap((left, right, base + offset), other) for other in taken):
            return left, right, base + offset
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < LINE
