"""infx resume: measure what a stopped, killed or partial run lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
    time_limit: Annotated[
        int,
        typer.Option(
            "--time-limit", min=0, metavar="SECONDS", help="again what passed a smaller limit"
        ),
    ] = 0,
    canary: Annotated[
        bool | None,
        typer.Option(
            "--canary/--no-canary",
            help="an entry's cheapest job goes first (default: as when it was made)",
            show_default=False,
        ),
    ] = None,
    fail_fast: Annotated[
        bool | None,
        typer.Option(
            "--fail-fast/--no-fail-fast",
            help="an entry's first failure stops its other jobs (default: as when it was made)",
            show_default=False,
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.driving import asked_again, drive, executor_of
    from infx.cli.options import existing_store, project_of, results_dir
    from infx.cli.output import say
    from infx.store import find_run, newest_unfinished, read_run

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run) if run else newest_unfinished(store)
        plan = read_run(Path(row.folder))[1]
        executor = executor_of(plan, project_of(row))
        say(f"run {row.run_id} on {executor.name}; its files: {row.folder}")
        asked = asked_again(row, plan, executor, canary, fail_fast)
        more = replace(asked, retry_failed=retry_failed, time_limit_s=time_limit)
        return drive(store, row, executor, more, as_json=as_json)
