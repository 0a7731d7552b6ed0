"""infx plan: what a sweep would run, what it leaves out and why, what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from infx.cli.inferencex import Checkout, ConfigKeys, Format, Runners, is_theirs, plan_theirs
from infx.cli.options import (
    EntryGlobs,
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
    from infx.cli.planning import Repetition
    from infx.domain.plan import Candidate, Job, Plan

__all__ = ["print_summary", "register"]


def _narrow(option: str, metavar: str | None, about: str, *others: str) -> Any:
    """Return an option of InferenceX's own generator; lists are repeated, or have commas."""
    return typer.Option(option, *others, metavar=metavar, help=f"InferenceX: {about}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help="Show what a sweep would run, without running it.")(_plan)


def _plan(
    context: typer.Context,
    sources: Sources,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="save the plan as JSON")
    ] = None,
    ledger: Annotated[bool, typer.Option("--ledger", help="list every candidate")] = False,
    entry: EntryGlobs = None,
    on: On = None,
    repeats: Repeats = None,
    interleave: Interleave = None,
    repeat_evaluations: RepeatEvaluations = False,
    reuse: Reuse = False,
    results: Results = None,
    as_json: Json = False,
    format_: Format = None,
    runners: Runners = None,
    checkout: Checkout = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="InferenceX: exit with 1 when there are findings")
    ] = False,
    no_evals: Annotated[
        bool, typer.Option("--no-evals", help="InferenceX: no row is evaluated")
    ] = False,
    evals_only: Annotated[
        bool, typer.Option("--evals-only", help="InferenceX: only rows that are evaluated")
    ] = False,
    all_evals: Annotated[
        bool, typer.Option("--all-evals", help="InferenceX: every row that can be evaluated")
    ] = False,
    config_keys: ConfigKeys = None,
    conc: Annotated[
        list[str] | None, _narrow("--conc", "N", "with --config-keys, only these concurrencies")
    ] = None,
    framework: Annotated[list[str] | None, _narrow("--framework", "NAME", "only these")] = None,
    model_prefix: Annotated[
        list[str] | None, _narrow("--model-prefix", "TEXT", "only keys that begin so")
    ] = None,
    precision: Annotated[list[str] | None, _narrow("--precision", "NAME", "only these")] = None,
    runner: Annotated[
        list[str] | None, _narrow("--runner", "LABEL", "only these labels", "--runner-type")
    ] = None,
    runner_node: Annotated[
        str | None, _narrow("--runner-node-filter", "TEXT", "a row for each machine named so")
    ] = None,
    scenario_type: Annotated[
        list[str] | None, _narrow("--scenario-type", "NAME", "fixed-seq-len or agentic-coding")
    ] = None,
    seq_lens: Annotated[list[str] | None, _narrow("--seq-lens", "NAME", "1k1k or 8k1k")] = None,
    min_conc: Annotated[int | None, _narrow("--min-conc", "N", "least concurrency")] = None,
    max_conc: Annotated[int | None, _narrow("--max-conc", "N", "largest concurrency")] = None,
    max_tp: Annotated[int | None, _narrow("--max-tp", "N", "largest tp of one node")] = None,
    max_ep: Annotated[int | None, _narrow("--max-ep", "N", "largest ep of one node")] = None,
    step_size: Annotated[
        int | None, _narrow("--step-size", "N", "factor between concurrencies of a range")
    ] = None,
    single_node: Annotated[bool, _narrow("--single-node", None, "entries of one node")] = False,
    multi_node: Annotated[bool, _narrow("--multi-node", None, "entries of several nodes")] = False,
) -> int:
    if is_theirs(sources, format_, context.params):
        return plan_theirs(sources, context.params, as_json)
    from infx.cli.options import results_dir
    from infx.cli.planning import Repetition

    again = Repetition(repeats, interleave, repeat_evaluations)
    measured = results_dir(results) if reuse else None
    return _plan_ours(sources, output, ledger, entry, on, again, measured, as_json)


def _plan_ours(
    sources: Sequence[str],
    output: Path | None,
    ledger: bool,
    entry: Sequence[str] | None,
    on: str | None,
    again: Repetition,
    reuse: Path | None,
    as_json: bool,
) -> int:
    from infx.cli.options import project
    from infx.cli.output import emit, say
    from infx.cli.planning import plan_of
    from infx.plan.saved import write_plan

    plan = plan_of(sources, entry, project(), on, again, reuse)
    if output:
        write_plan(plan, output)
    code = 0 if plan.expected else 5
    if as_json:
        emit("plan", _data(plan, ledger, output), ok=not code, diagnostics=plan.findings)
        return code
    print_summary(plan)
    if ledger:
        print()
        _print_ledger(plan.ledger)
    if output:
        say(f"saved: {output}; run it with infx sweep {output}")
    return code


def print_summary(plan: Plan) -> None:
    """Print entries, counts, rules, findings and cost to stdout."""
    from infx.cli.output import duration, table
    from infx.domain.plan import Disposition

    rows = [(*row[:5], duration(row[5])) for row in _entries(plan)]
    if rows:
        table(("ENTRY", "ARMS", "POINTS", "EVALUATIONS", "JOBS", "TIME"), rows)
        print()
    counts = [(plan.counts.get(kind, 0), kind) for kind in get_args(Disposition)]
    counted = " + ".join(f"{n} {kind}" for n, kind in counts if n) or "nothing"
    print(f"{counted} = {plan.candidates} candidates")
    for rule, count in plan.excluded_by.items():
        print(f"  {count} left out: {rule}")
    for finding in plan.findings:
        print(f"{finding.level}: {finding}")
    for line in _again(plan):
        print(line)
    print(_cost(plan) if plan.jobs else "nothing is left to run")


def _entries(plan: Plan) -> list[tuple[str, int, int, int, int, float]]:
    """Return for each entry: name, arms, points, evaluations, jobs, seconds."""
    from infx.plan.jobs import job_s

    rows = []
    for entry in dict.fromkeys(point.entry for point in plan.points):
        points = [point for point in plan.points if point.entry == entry]
        jobs = [job for job in plan.jobs if job.points[0].entry == entry]
        throughput = sum(point.mode == "throughput" for point in points)
        arms = len({point.arm.arm_id for point in points if point.mode == "throughput"})
        seconds = sum(job_s(job) for job in jobs)
        rows.append((entry, arms, throughput, len(points) - throughput, len(jobs), seconds))
    return rows


def _again(plan: Plan) -> list[str]:
    """Return what is measured several times, and which jobs take turns on one allocation."""
    from infx.plan.repeats import times_measured

    groups: dict[str, list[Job]] = {}
    for job in plan.jobs:
        if job.group:
            groups.setdefault(job.group, []).append(job)
    turns = [
        f"in turn on one allocation: {', '.join(job.name for job in jobs)}"
        for jobs in groups.values()
    ]
    times = times_measured(plan)
    return [*([f"measured up to {times} times"] if times > 1 else []), *turns]


def _cost(plan: Plan) -> str:
    from infx.cli.output import duration

    cost = plan.cost
    measurements = f"{cost.points} measurements of " if cost.points > len(plan.points) else ""
    gpu = f", {cost.gpu_hours:.1f} GPU-hours" if cost.gpu_hours else ", no GPU"
    what = f"{measurements}{len(plan.points)} points"
    return f"{cost.jobs} jobs, {what}, about {duration(cost.wall_s)}{gpu}"


def _print_ledger(ledger: Sequence[Candidate]) -> None:
    from infx.cli.output import table
    from infx.domain.axes import kebab
    from infx.domain.point import short

    rows = [
        (
            row.disposition,
            row.entry,
            " ".join(f"{kebab(name)}={_shown(value)}" for name, value in row.values.items()),
            short(row.point_id),
            _why(row),
            row.where,
        )
        for row in ledger
    ]
    table(("WHAT", "ENTRY", "VALUES", "POINT", "WHY", "WHERE"), rows)


def _shown(value: object) -> str:
    """Return a value as YAML spells it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def _why(row: Candidate) -> str:
    """Return what decided: a code with its sentence, or the reason of a rule."""
    from infx.domain.codes import CODES

    code = row.rule.partition(":")[0]
    return f"{code}: {row.sentence}" if code in CODES else row.sentence


def _data(plan: Plan, ledger: bool, output: Path | None) -> dict[str, Any]:
    names = ("entry", "arms", "points", "evaluations", "jobs", "wall_s")
    jobs: dict[str, list[str]] = {}
    for job in plan.jobs:
        for point in job.points:
            jobs.setdefault(point.point_id, []).append(job.job_id)
    return {
        "plan_id": plan.plan_id,
        "candidates": plan.candidates,
        "counts": plan.counts,
        "excluded_by": plan.excluded_by,
        "cost": plan.cost,
        "entries": [dict(zip(names, row, strict=True)) for row in _entries(plan)],
        "points": [
            {
                "point_id": point.point_id,
                "label": point.label,
                "entry": point.entry,
                "mode": point.mode,
                "conc": point.conc,
                "job_id": jobs[point.point_id][0],
                "job_ids": jobs[point.point_id],
            }
            for point in plan.points
        ],
        "jobs": [
            {
                "job_id": job.job_id,
                "name": job.name,
                "repeat": job.repeat,
                "group": job.group or None,
                "points": len(job.points),
            }
            for job in plan.jobs
        ],
        "ledger": plan.ledger if ledger else None,
        "saved": str(output) if output else None,
    }
