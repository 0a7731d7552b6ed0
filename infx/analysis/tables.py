"""Tables of anybody: rows of named cells, from CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["Row", "Table", "finite", "read_table", "text_of"]

_OURS = ("points", "rows", "folders")
"""Where a command of infx keeps its rows when its JSON holds several lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: ``number`` counts from 1; ``line`` is its first line in a CSV file, and ``starts``
    where its cells begin in that line. JSON has no lines to speak of (0)."""

    number: int
    cells: Mapping[str, Any]
    line: int = 0
    starts: Mapping[str, int] | None = None

    def get(self, column: str) -> Any:
        """Return a cell, None where there is none; a dot leads into nested objects."""
        if column in self.cells:
            return self.cells[column]
        found: Any = self.cells
        for part in column.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    @property
    def label(self) -> str:
        """``line 5`` or ``row 3``: how a reader finds it."""
        return f"line {self.line}" if self.line else f"row {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of ``file``; ``columns`` are those that some row has, dotted down to its cells."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def where(self, row: Row, column: str) -> Where:
        """Return the place of a cell."""
        return Where(self.file, row.line, (row.starts or {}).get(column, 1) if row.line else 0)


def read_table(text: str, file: str) -> Table:
    """Return the table in ``text``; ``file`` is its name, told in errors.

    CSV (tabs in a ``.tsv``) has a header and as many cells in each row. JSON is a list of objects,
    an object of equally long lists, one a column, or what a command of infx prints with ``--json``.
    Raises ConfigError ``bad-table``.
    """
    plain = text.removeprefix("\ufeff")
    if file.endswith((".csv", ".tsv")) or plain.lstrip()[:1] not in ("[", "{"):
        rows = list(_csv_rows(plain, file))
    else:
        rows = [Row(number=n, cells=cells) for n, cells in enumerate(_json_rows(plain, file), 1)]
    if not rows:
        raise _bad(file, "it holds no rows")
    columns = dict.fromkeys(name for row in rows for name in _names(row.cells))
    if not columns:
        raise _bad(file, "its rows hold no cells")
    return Table(file=file, columns=tuple(columns), rows=tuple(rows))


def finite(cell: Any) -> float | None:
    """Return the number in a cell; None where it holds none, or one that is not finite."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float) or "_" in str(cell):
        return None
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def text_of(cell: Any) -> str:
    """Return a cell as text: as JSON writes it where it is none."""
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)


def _csv_rows(text: str, file: str) -> Iterator[Row]:
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines, delimiter="\t" if file.endswith(".tsv") else ",", strict=True)
    header: list[str] = []
    number, line = 0, 1
    try:
        for cells in reader:
            if cells and header:
                number += 1
                yield _csv_row(header, cells, number, line, lines[line - 1], file)
            elif cells:
                header = _header(cells, file, line)
            line = reader.line_num + 1
    except csv.Error as error:
        raise _bad(file, str(error), line) from error


def _header(cells: Sequence[str], file: str, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise _bad(file, f"two columns are called {twice[0]!r}", line)
    return names


def _csv_row(
    header: Sequence[str], cells: Sequence[str], number: int, line: int, text: str, file: str
) -> Row:
    if len(cells) != len(header):
        raise _bad(file, f"{len(cells)} cells where the header has {len(header)}", line)
    starts = accumulate((len(cell) + 1 for cell in cells), initial=1)
    return Row(
        number=number,
        line=line,
        cells={name: cell.strip() for name, cell in zip(header, cells, strict=True)},
        starts=None if '"' in text else dict(zip(header, starts, strict=False)),
    )


def _json_rows(text: str, file: str) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads(text, object_pairs_hook=_object)
    except _TwiceError as error:
        raise _bad(file, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _bad(file, f"not JSON: {error}", getattr(error, "lineno", 0)) from error
    rows = _listed(found)
    if rows is None:
        raise _bad(file, "expected a list of objects, or an object of equally long lists")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise _bad(file, f"row {number} is {text_of(row)[:40]}, expected an object")
    return rows


class _TwiceError(ValueError):
    """An object has a name twice, of which Python's reader would keep the last without a word."""


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _TwiceError(f"an object names {twice!r} twice")
    return found


def _listed(found: Any) -> list[Any] | None:
    """Return the list of rows in a document, None where it holds none."""
    if isinstance(found, list) or not isinstance(found, dict):
        return found if isinstance(found, list) else None
    if {"schema", "data"} <= found.keys():
        return _of_command(found["data"])
    if not all(isinstance(column, list) for column in found.values()):
        return None
    if len({len(column) for column in found.values()}) != 1:
        return None
    return [dict(zip(found, cells, strict=True)) for cells in zip(*found.values(), strict=True)]


def _of_command(data: Any) -> list[Any] | None:
    """Return the rows among what a command prints: the only list, or that of a known name."""
    if not isinstance(data, dict):
        return data if isinstance(data, list) else None
    lists = {name: held for name, held in data.items() if isinstance(held, list)}
    known = [held for name, held in lists.items() if name in _OURS or len(lists) == 1]
    return known[0] if known else None


def _names(cells: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, cell in cells.items():
        if isinstance(cell, dict) and cell:
            yield from _names(cell, f"{before}{name}.")
        else:
            yield f"{before}{name}"


def _bad(file: str, sentence: str, line: int = 0) -> ConfigError:
    return ConfigError(
        [Finding("bad-table", "error", sentence, Where(file, line, 1 if line else 0))]
    )
