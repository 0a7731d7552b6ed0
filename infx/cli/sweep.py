"""infx sweep: plan, run, gather, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import (
    Canary,
    EntryGlobs,
    FailFast,
    Interleave,
    Json,
    On,
    RepeatEvaluations,
    Repeats,
    Results,
    Reuse,
    Sources,
)

if TYPE_CHECKING:
    from infx.config.project import Project
    from infx.domain.plan import Plan

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep", help="Run matrices, or a saved plan, and report.")(_sweep)


def _sweep(
    sources: Sources,
    entry: EntryGlobs = None,
    on: On = None,
    repeats: Repeats = None,
    interleave: Interleave = None,
    repeat_evaluations: RepeatEvaluations = False,
    reuse: Reuse = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="show the plan and the exact job scripts, run nothing"),
    ] = False,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            help="begin it, print its name and let go: infx ci wait, or infx watch, sees it end",
        ),
    ] = False,
    canary: Canary = None,
    fail_fast: FailFast = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli import detaching, driving
    from infx.cli.options import project, results_dir
    from infx.cli.planning import Repetition, plan_of

    here = project()
    again = Repetition(repeats, interleave, repeat_evaluations)
    folder = results_dir(results)
    plan = plan_of(sources, entry, here, on, again, folder if reuse else None)
    if dry_run:
        return _show(plan, here, folder, as_json)
    _summary(plan)
    said = (*sources, *again.words, *(("--reuse",) if reuse else ()))
    start = detaching.start if detach else driving.start
    return start(plan, said, here, folder, as_json, canary=canary, fail_fast=fail_fast)


def _summary(plan: Plan) -> None:
    """Print the plan as talk: what a sweep prints to stdout is what came out of it."""
    import sys
    from contextlib import redirect_stdout

    from infx.cli.plan import print_summary

    with redirect_stdout(sys.stderr):
        print_summary(plan)


def _show(plan: Plan, here: Project, folder: Path, as_json: bool) -> int:
    from infx.cli.driving import executor_of
    from infx.cli.output import emit, say
    from infx.cli.plan import print_summary
    from infx.launch.preview import scripts

    executor = executor_of(plan, here)
    shown = scripts(executor, plan, folder)
    executor.close()
    jobs = [
        {
            "job": job.name,
            "points": [point.label for point in job.points],
            "repeat": job.repeat,
            "group": job.group or None,
        }
        for job in plan.jobs
    ]
    code = 0 if plan.expected else 5
    if as_json:
        data = {"dry_run": True, "jobs": jobs, "results": str(folder), "scripts": shown}
        emit("sweep", data, ok=not code)
        return code
    print_summary(plan)
    for script in shown:
        print(f"\n{script}", end="")
    asked = ", which was not asked" if executor.durable else ""
    say(f"would run on {executor.name}{asked}; results in {folder}")
    return code
