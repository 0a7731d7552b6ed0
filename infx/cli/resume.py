"""infx resume: measure what a stopped, killed or partial run lacks."""

from __future__ import annotations

from typing import Annotated

import typer

from infx.cli.options import Json, Results

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume", help="Measure what a run lacks; nothing is measured twice.")(_resume)


def _resume(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="a run's name (default: the newest unfinished one)"),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="measure failed and invalid points again, too")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.driving import drive, executor_named
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import say
    from infx.store import find_run, newest_unfinished

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run) if run else newest_unfinished(store)
        say(f"run {row.run_id}; its files: {row.folder}")
        executor = executor_named(row.executor)
        return drive(store, row, executor, retry_failed=retry_failed, as_json=as_json)
