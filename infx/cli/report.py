"""infx report: write the report of one run or several, beside a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.report.model import ReportModel
    from infx.store import RunRow, Store

__all__ = ["register"]

_UNWRITABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help="Write the report of runs: HTML, and PNG or Markdown.")(_report)


def _report(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN…]",
            help="runs of one report (default: last); a point that several hold is repeated",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="RUN",
            help="compare with this run, or with the live curves (live); again: with its repeats"
            " too",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="the HTML file (default: in the first run)"
        ),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="write a PNG beside it")] = False,
    markdown: Annotated[bool, typer.Option("--md", help="write Markdown beside it")] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.baselines import baseline_runs
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import emit
    from infx.cli.reporting import report_of, stored_run

    with existing_store(results_dir(results)) as store:
        rows = _rows(store, runs or ["last"], baseline or [])
        data = [stored_run(store, row) for row in rows]
        model = report_of(data, baseline_runs(store, baseline or [], data))
    html = output or data[0].folder / "report.html"
    paths = [str(path) for path in _written(model, html, png=png, markdown=markdown)]
    if as_json:
        from infx.report.data import data_of

        emit("report", data_of(model) | {"files": paths})
        return 0
    print("\n".join([model.verdict, *paths]))
    return 0


def _rows(store: Store, runs: Sequence[str], baseline: Sequence[str]) -> list[RunRow]:
    """Return the runs that are named. Raises UsageError for one that is named twice, be it as a
    baseline."""
    from infx.cli.baselines import LIVE_CURVES
    from infx.domain.errors import UsageError
    from infx.store import find_run

    rows = [find_run(store, name) for name in runs]
    before = [find_run(store, name) for name in baseline if name != LIVE_CURVES]
    ids = [row.run_id for row in (*rows, *before)]
    twice = next((run_id for run_id in ids if ids.count(run_id) > 1), None)
    if twice:
        text = f"run {twice} is named twice in {' '.join((*runs, *baseline))}"
        raise UsageError("bad-option", text, hint="list runs with infx status")
    return rows


def _written(model: ReportModel, html: Path, *, png: bool, markdown: bool) -> list[Path]:
    from infx.domain.errors import UsageError

    try:
        return _write(model, html, png=png, markdown=markdown)
    except _UNWRITABLE as error:
        message = f"cannot write the report to {html}: {error.strerror}"
        hint = "name a file in a folder that exists: -o FILE"
        raise UsageError("bad-option", message, hint=hint) from error


def _write(model: ReportModel, html: Path, *, png: bool, markdown: bool) -> list[Path]:
    from infx.report.html import write_html

    write_html(model, html)
    written = [html]
    if png:
        from infx.cli.boundary import needing
        from infx.report.png import write_png

        with needing("matplotlib", "--png", "png"):
            write_png(model, html.with_suffix(".png"))
        written.append(html.with_suffix(".png"))
    if markdown:
        from infx.report.markdown import write_markdown

        written.append(html.with_suffix(".md"))
        write_markdown(model, written[-1])
    return written
