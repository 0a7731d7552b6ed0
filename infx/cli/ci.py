"""infx ci: what CI does for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.ci.plan import CiPlan
    from infx.domain.findings import Finding

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="From a pull request's labels to jobs.")
    commands.callback()(_ci)
    commands.command(
        "plan",
        help="Plan what the labels and the added changelog entries of a pull request ask for:"
        " exit 1 when a run cannot be reused as a comment asks.",
    )(_plan)
    app.add_typer(commands, name="ci", no_args_is_help=True)


def _ci() -> None:
    pass


def _plan(
    event: Annotated[
        Path, typer.Option("--event", metavar="FILE", help="GitHub's event of the pull request")
    ],
    base: Annotated[str, typer.Option("--base", metavar="REV", help="what it is merged into")],
    head: Annotated[str, typer.Option("--head", metavar="REV", help="its last commit")],
    comments: Annotated[
        Path | None,
        typer.Option("--comments", metavar="FILE", help="its comments, as GitHub lists them"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", metavar="FILE", help="rules of labels (default: ours)"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="save what is to be swept")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--reuse-from", metavar="DIR", help="reuse what a store there has measured"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.cli.output import emit
    from infx.cli.planning_ci import ci_plan, reuse_of
    from infx.plan.saved import write_plan

    made = ci_plan(event, base, head, comments, labels, results)
    run, found = reuse_of(made, results)
    code = 1 if any(finding.level == "error" for finding in found) else 0
    if output and made.plan and made.decision == "sweep":
        write_plan(made.plan, output)
    if as_json:
        emit(
            "ci-plan",
            _data(made) | {"reused_run": run or None},
            ok=not code,
            diagnostics=(*made.warnings, *found),
        )
    else:
        _show(made, found)
    return code


def _data(made: CiPlan) -> dict[str, Any]:
    names = ("decision", "reason", "pull_request", "head_sha", "settings", "entries", "canaries")
    more = ("reuse", "submission_valid", "reusable")
    return {
        **{name: getattr(made, name) for name in (*names, *more)},
        "jobs": [
            {
                "job_id": job.job_id,
                "name": job.name,
                "cluster": job.cluster,
                "points": [point.label for point in job.points],
            }
            for job in made.jobs
        ],
        "counts": made.plan.counts if made.plan else {},
        "cost": made.plan.cost if made.plan else None,
    }


def _show(made: CiPlan, found: Sequence[Finding]) -> None:
    from infx.cli.output import duration, say, table
    from infx.plan.jobs import job_s

    first = {canary.job_id for canary in made.canaries}
    if rows := [
        (
            "canary" if job.job_id in first else "",
            job.name,
            job.cluster,
            len(job.points),
            duration(job_s(job)),
        )
        for job in made.jobs
    ]:
        table(("FIRST", "JOB", "CLUSTER", "POINTS", "TIME"), rows)
    print(f"{made.decision}: {made.reason}")
    if not made.submission_valid:
        print("what is measured so is not valid for submission")
    for finding in (*made.warnings, *found):
        say(f"{finding.level}: {finding}")
