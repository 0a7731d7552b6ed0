"""What noise and coverage say of each line of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from infx.analysis.metrics import NORTH_STAR, THROUGHPUT, Priced
from infx.analysis.noise import Coverage, band, coverage, frontier_chances
from infx.report.model import Band, PointRow

__all__ = ["bands_of", "coverage_of", "with_chances"]

Place = tuple[float, float]

_DIRECTIONS = (NORTH_STAR.direction, THROUGHPUT.direction)


def with_chances(rows: Sequence[PointRow]) -> list[PointRow]:
    """Return the rows with their chance of being on the deciding frontier of their line."""
    chances: dict[str, float | None] = {}
    for members in _lines(rows).values():
        found = frontier_chances([_places(row) for row in members], _DIRECTIONS)
        chances |= zip((row.anchor for row in members), found, strict=True)
    return [replace(row, chance=chances.get(row.anchor)) for row in rows]


def coverage_of(rows: Sequence[PointRow]) -> dict[int, Coverage]:
    """Return for the number of each series how much of it is on its deciding frontier."""
    lines = _lines(rows)
    return {
        number: coverage(
            sum(row.on_frontier for row in lines.get(number, ())),
            [row.chance for row in lines.get(number, ())],
            sum(row.series.number == number and not row.valid and row.plotted for row in rows),
        )
        for number in {row.series.number: None for row in rows}
    }


def bands_of(rows: Sequence[PointRow]) -> Mapping[int, Band]:
    """Return for the number of each series between what the deciding frontier lies; none for one
    whose points were measured once, or whose noise leaves no low side to draw."""
    found = {}
    for number, members in _lines(rows).items():
        lines = band([_places(row) for row in members], _DIRECTIONS)
        if lines and all(lines):
            found[number] = Band(low=lines[0], high=lines[1])
    return found


def _lines(rows: Sequence[PointRow]) -> dict[int, list[PointRow]]:
    lines: dict[int, list[PointRow]] = {}
    for row in rows:
        if row.valid:
            lines.setdefault(row.series.number, []).append(row)
    return lines


def _places(row: PointRow) -> list[Place]:
    """Return where a valid point stands in each repeat on the deciding chart."""
    priced = [Priced(measurement=r.measurement) for r in row.repeats if r.measurement]
    told = ((NORTH_STAR.of(one), THROUGHPUT.of(one)) for one in priced)
    return [(x, y) for x, y in told if x is not None and y is not None]
