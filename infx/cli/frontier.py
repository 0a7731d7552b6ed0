"""infx frontier: which rows of a table no other row beats."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.analysis.table_frontiers import Axis, Front, Judged, Judgement
    from infx.analysis.tables import Table

__all__ = ["register"]

_AXIS = "COL:max|min"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("frontier", help="Say which rows of a table are on its frontier.")(_frontier)


def _frontier(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="CSV with a header, or JSON; - reads stdin")
    ],
    x: Annotated[str, typer.Option("--x", metavar=_AXIS, help="a column and what is better")],
    y: Annotated[str, typer.Option("--y", metavar=_AXIS, help="another one")],
    axis: Annotated[
        list[str] | None, typer.Option("--axis", metavar=_AXIS, help="one more; may be repeated")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", metavar="COL", help="a frontier a value; may be repeated"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="COL=TEXT", help="only rows that hold it; may be repeated"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.analysis.table_frontiers import judge_table
    from infx.analysis.tables import read_table
    from infx.cli.output import emit

    found = read_table(_text(table), "<stdin>" if str(table) == "-" else str(table))
    axes = [_axis(text, found) for text in (x, y, *(axis or ()))]
    _check_distinct(axes)
    groups = [_column(name, found) for name in group or ()]
    judged = judge_table(
        found, axes, group=groups, only=[_only(text, found) for text in only or ()]
    )
    if as_json:
        emit("frontier", judged)
    else:
        _show(judged)
    return 0


def _text(path: Path) -> str:
    import sys

    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding, Where

    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return data.decode("utf-8")
    except FileNotFoundError:
        code, sentence = "file-not-found", "there is no such file"
    except UnicodeDecodeError as error:
        code, sentence = "not-utf8", str(error)
    except OSError as error:
        code, sentence = "file-unreadable", str(error.strerror)
    raise ConfigError([Finding(code, "error", sentence, Where(str(path)))])


def _axis(text: str, table: Table) -> Axis:
    from infx.analysis.table_frontiers import Axis
    from infx.domain.errors import UsageError

    column, _, direction = text.rpartition(":")
    if direction == "max":
        return Axis(_column(column, table), "max")
    if direction == "min":
        return Axis(_column(column, table), "min")
    name = column or text
    hint = f"{name}:max where more is better, {name}:min where less is"
    raise UsageError("bad-option", f"axis {text!r} does not say what is better", hint=hint)


def _check_distinct(axes: Sequence[Axis]) -> None:
    from infx.domain.errors import UsageError

    columns = [axis.column for axis in axes]
    if len(set(columns)) < len(columns):
        text = f"a column is two axes: {', '.join(map(str, axes))}"
        raise UsageError("bad-option", text, hint="name each column once")


def _only(text: str, table: Table) -> tuple[str, str]:
    from infx.domain.errors import UsageError

    column, equals, value = text.partition("=")
    if not equals:
        raise UsageError("bad-option", f"--only {text!r} names no text", hint="--only status=ok")
    return _column(column, table), value


def _column(name: str, table: Table) -> str:
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import UsageError

    if name in table.columns:
        return name
    text = f"{table.file} has no column {name!r}"
    raise UsageError("bad-option", text, hint=did_you_mean(name, table.columns))


def _show(found: Judgement) -> None:
    from infx.cli.output import table
    from infx.report.figures import count

    groups = tuple(found.rows[0].group)
    names = (found.names,) if found.names else ()
    axes = (f"{axis.column} ({axis.direction})" for axis in found.axes)
    headers = ("ROW", *names, *groups, *axes, "FRONTIER", "DOMINATED BY")
    table(headers, [_row(row, named=bool(names)) for row in found.rows])
    print()
    for front in found.fronts:
        print(_coverage(front))
    if found.left_out:
        print(f"Left out by --only: {count(found.left_out, 'row')}.")
    print(textwrap.fill(found.tie_rule, 100))


def _row(row: Judged, *, named: bool) -> tuple[object, ...]:
    name = (row.name,) if named else ()
    values = (f"{value:.6g}" for value in row.values.values())
    return row.label, *name, *row.group.values(), *values, "on" if row.on else "", row.dominated_by


def _coverage(front: Front) -> str:
    from infx.report.figures import count

    named = ", ".join(f"{name} {text}" for name, text in front.group.items())
    told = f"{front.on} of {count(front.rows, 'row')} on the frontier"
    few = "" if front.on >= front.advised else f"; {front.advised} or more are advised"
    return f"{named}: {told}{few}." if named else f"{told}{few}."
