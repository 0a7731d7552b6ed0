"""infx report: write a run's report again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from infx.store import RunRow, Store

__all__ = ["register"]

_UNWRITABLE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help="Write the report of a run: HTML, and PNG or Markdown.")(_report)


def _report(
    run: Run = "last",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="the HTML file (default: in the run)"),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="write a PNG beside it")] = False,
    markdown: Annotated[bool, typer.Option("--md", help="write Markdown beside it")] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import emit
    from infx.store import find_run

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        model = _model(store, row)
    html = output or Path(row.folder) / "report.html"
    try:
        paths = [str(path) for path in _write(model, html, png=png, markdown=markdown)]
    except _UNWRITABLE as error:
        raise _unwritable(html, error) from error
    if as_json:
        emit("report", {"run_id": row.run_id, "verdict": model.verdict, "files": paths})
        return 0
    print("\n".join([model.verdict, *paths]))
    return 0


def _unwritable(html: Path, error: OSError) -> Exception:
    from infx.domain.errors import UsageError

    message = f"cannot write the report to {html}: {error.strerror}"
    return UsageError("bad-option", message, hint="name a file in a folder that exists: -o FILE")


def _model(store: Store, run: RunRow) -> Any:
    from infx.cli.reporting import report_model
    from infx.store import read_run

    return report_model(run, read_run(Path(run.folder))[1], store.records(run.run_id))


def _write(model: Any, html: Path, *, png: bool, markdown: bool) -> list[Path]:
    from infx.report.html import write_html
    from infx.report.markdown import write_markdown
    from infx.report.png import write_png

    write_html(model, html)
    written = [html]
    if png:
        written.append(html.with_suffix(".png"))
        write_png(model, written[-1])
    if markdown:
        written.append(html.with_suffix(".md"))
        write_markdown(model, written[-1])
    return written
