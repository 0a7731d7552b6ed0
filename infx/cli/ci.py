"""infx ci: what CI does for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli import ci_comment, ci_comments, ci_status, ci_stop, ci_wait
from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.ci.decision import CiPlan

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="From a pull request's labels to jobs.")
    commands.callback()(_ci)
    commands.command(
        "plan",
        help="Plan what the labels and the added changelog entries of a pull request ask for:"
        " exit 1 when no run stands for what is to be reused or published.",
    )(_plan)
    for module in (ci_wait, ci_stop, ci_comments, ci_comment, ci_status):
        module.register(commands)
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
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="save what is swept, reused or published"
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--reuse-from", metavar="DIR", help="reuse what a store there has measured"),
    ] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--outputs", metavar="FILE", help="add decision=… and more lines to $GITHUB_OUTPUT"
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.ci.outputs import outputs as told_of
    from infx.cli.output import emit, say
    from infx.cli.planning_ci import append_outputs, ci_plan
    from infx.plan.saved import write_plan

    made = ci_plan(event, base, head, comments, labels, results)
    code = 1 if made.faults else 0
    if output and made.plan and made.decision != "nothing" and not made.faults:
        write_plan(made.plan, output)
    elif output:
        say(f"no plan is written to {output}")
    if outputs:
        append_outputs(told_of(made), outputs)
    if as_json:
        found = (*made.warnings, *made.faults)
        emit("ci-plan", _data(made), ok=not code, diagnostics=found)
    else:
        _show(made)
    return code


def _data(made: CiPlan) -> dict[str, Any]:
    names = ("decision", "reason", "pull_request", "head_sha", "settings", "entries", "canaries")
    more = ("reuse", "runs", "submission_valid", "reusable")
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
        "cost": made.plan.cost if made.plan and made.jobs else None,
    }


def _show(made: CiPlan) -> None:
    from infx.cli.output import say, table

    if rows := _rows(made):
        table(("FIRST", "JOB", "CLUSTER", "POINTS", "TIME"), rows)
    print(f"{made.decision}: {made.reason}")
    if not made.submission_valid:
        print("what is measured so is not valid for submission")
    for finding in (*made.warnings, *made.faults):
        say(f"{finding.level}: {finding}")


def _rows(made: CiPlan) -> list[tuple[object, ...]]:
    from infx.cli.output import duration
    from infx.plan.jobs import job_s

    first = {canary.job_id for canary in made.canaries}
    return [
        (
            "canary" if job.job_id in first else "",
            job.name,
            job.cluster,
            len(job.points),
            duration(job_s(job)),
        )
        for job in made.jobs
    ]
