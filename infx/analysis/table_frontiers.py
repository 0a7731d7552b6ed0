"""Which rows of a table are on its frontier, and what beats the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infx.analysis.metrics import COVERAGE_ADVICE
from infx.analysis.pareto import Direction, dominators
from infx.analysis.tables import Row, Table, finite, text_of
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding

__all__ = ["Axis", "Front", "Judged", "Judgement", "judge_table"]

TIE_RULE = (
    "A row is off when another is at least as good on every axis and better on one; "
    "rows that are equal on all axes are on, or off, together."
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A column of numbers and the direction in which they improve."""

    column: str
    direction: Direction

    def __str__(self) -> str:
        return f"{self.column}:{self.direction}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row: its cells by group and by axis, and the ``label`` of a frontier row that dominates it,
    empty when it is on."""

    number: int
    label: str
    name: str
    group: Mapping[str, str]
    values: Mapping[str, float]
    on: bool
    dominated_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The frontier of a group: ``on`` of its ``rows``; ``advised`` are five or more."""

    group: Mapping[str, str]
    on: int
    rows: int
    advised: int = COVERAGE_ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Every row that was judged, in the table's order; ``left_out`` counts those that were not
    asked for. ``names`` is the column that names rows, empty where none does."""

    axes: tuple[Axis, ...]
    names: str
    rows: tuple[Judged, ...]
    fronts: tuple[Front, ...]
    left_out: int = 0
    tie_rule: str = TIE_RULE


def judge_table(
    table: Table,
    axes: Sequence[Axis],
    *,
    group: Sequence[str] = (),
    only: Sequence[tuple[str, str]] = (),
) -> Judgement:
    """Return the frontier of the rows of each value of the ``group`` columns, of rows whose column
    holds the text that ``only`` pairs with it.

    Raises ConfigError naming every cell of an axis that is not a finite number (``bad-cell``), or
    that no row is left (``bad-table``).
    """
    rows = [row for row in table.rows if all(_text(row, name) == text for name, text in only)]
    if not rows:
        told = ", ".join(f"{name}={text}" for name, text in only)
        raise ConfigError([Finding("bad-table", "error", f"no row of {table.file} has {told}")])
    places = _places(table, rows, axes)
    names = _naming(table, {*(axis.column for axis in axes), *group})
    judged, fronts = [], []
    for key, members in _grouped(rows, group).items():
        shared = dict(zip(group, key, strict=True))
        found = _judged(
            [rows[n] for n in members], [places[n] for n in members], axes, names, shared
        )
        judged += found
        fronts.append(Front(group=shared, on=sum(row.on for row in found), rows=len(found)))
    return Judgement(
        axes=tuple(axes),
        names=names,
        rows=tuple(sorted(judged, key=lambda row: row.number)),
        fronts=tuple(fronts),
        left_out=len(table.rows) - len(rows),
    )


def _grouped(rows: Sequence[Row], group: Sequence[str]) -> Mapping[tuple[str, ...], Sequence[int]]:
    """Return the indices of the rows by their texts in the ``group`` columns."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(tuple(_text(row, name) for name in group), []).append(index)
    return groups


def _places(table: Table, rows: Sequence[Row], axes: Sequence[Axis]) -> list[list[float]]:
    """Return each row's numbers, axis by axis. Raises ConfigError with all cells that hold none."""
    read = [[(axis.column, finite(row.get(axis.column))) for axis in axes] for row in rows]
    findings = [
        _fault(table, row, column)
        for row, cells in zip(rows, read, strict=True)
        for column, value in cells
        if value is None
    ]
    if findings:
        raise ConfigError(findings)
    return [[value for _, value in cells if value is not None] for cells in read]


def _judged(
    rows: Sequence[Row],
    places: Sequence[Sequence[float]],
    axes: Sequence[Axis],
    names: str,
    group: Mapping[str, str],
) -> list[Judged]:
    beaten = dominators(places, [axis.direction for axis in axes])
    return [
        Judged(
            number=row.number,
            label=row.label,
            name=_text(row, names) if names else "",
            group=group,
            values={axis.column: value for axis, value in zip(axes, place, strict=True)},
            on=by is None,
            dominated_by="" if by is None else rows[by].label,
        )
        for row, place, by in zip(rows, places, beaten, strict=True)
    ]


def _fault(table: Table, row: Row, column: str) -> Finding:
    cell = row.get(column)
    held = "nothing" if cell in (None, "") else text_of(cell)[:40]
    sentence = f"row {row.number}: {column} holds {held}, expected a finite number"
    return Finding("bad-cell", "error", sentence, table.where(row, column))


def _naming(table: Table, taken: set[str]) -> str:
    """Return the column that names a row: the first, unless it is an axis or a group."""
    first = table.columns[0]
    return "" if first in taken else first


def _text(row: Row, column: str) -> str:
    return text_of(row.get(column))
