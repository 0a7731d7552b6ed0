"""infx repro: measure a recorded point again and say whether it came out as before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, On, Results

if TYPE_CHECKING:
    from infx.domain.plan import Plan
    from infx.launch.executor import Executor
    from infx.launch.repro import Recorded
    from infx.store import Store

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "repro",
        help="Measure a recorded point again and say whether it reproduced: exit 0 it did, 1 it did"
        " not or nobody can tell, 4 it could not be measured.",
    )(_repro)


def _repro(
    point: Annotated[
        str,
        typer.Argument(metavar="ID", help="a point's label, or 8 or more digits of its identity"),
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="whose record (default: the newest run in which the point is ok)",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, metavar="N", help="measure it so often now")
    ] = 1,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            min=0.1,
            max=100,
            metavar="PERCENT",
            help="a figure that is off by no more is the same",
        ),
    ] = 5.0,
    on: On = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what would be measured, run nothing")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.driving import executor_of
    from infx.cli.options import existing_store, project_of, results_dir
    from infx.cli.planning import cluster_named
    from infx.launch.repro import plan_again, recorded

    folder = results_dir(results)
    with existing_store(folder) as store:
        found = recorded(store, point, run)
        project = project_of(found.run)
        plan = plan_again(found, runs, cluster_named(on, project) if on else None)
        executor = executor_of(plan, project)
        if dry_run:
            return _show(found, plan, executor, folder, as_json)
        _check_numpy()
        executor.check(plan.jobs)
        return _measure(store, found, plan, executor, folder, margin / 100, as_json)


def _check_numpy() -> None:
    """Raise UsageError where numpy is missing: it draws intervals when all is measured."""
    from importlib.util import find_spec

    from infx.cli.boundary import lacking

    if find_spec("numpy") is None:
        raise lacking("numpy", "infx repro", "bench")


def _show(found: Recorded, plan: Plan, executor: Executor, results: Path, as_json: bool) -> int:
    from infx.cli.output import emit, say
    from infx.cli.reproducing import show_figures, show_record
    from infx.launch.preview import scripts

    shown = scripts(executor, plan, results)
    executor.close()
    jobs = [{"job": job.name, "repeat": job.repeat} for job in plan.jobs]
    if as_json:
        told = {"dry_run": True, "run_id": found.run.run_id, "point": found.point.label}
        emit("repro", told | {"jobs": jobs, "cluster": executor.name, "scripts": shown})
        return 0
    show_record(found)
    show_figures(found)
    for script in shown:
        print(f"\n{script}", end="")
    times = "once" if len(jobs) == 1 else f"{len(jobs)} times"
    say(f"would measure it {times} on {executor.name}; results in {results}")
    return 0


def _measure(
    store: Store,
    found: Recorded,
    plan: Plan,
    executor: Executor,
    results: Path,
    margin: float,
    as_json: bool,
) -> int:
    from infx.cli.driving import driven, made
    from infx.cli.outcome import INTERRUPTED
    from infx.cli.output import say
    from infx.cli.reporting import run_data, write_reports
    from infx.cli.reproducing import tell
    from infx.launch.sweep import Asked
    from infx.store import REPRO, find_run, writing

    source = f"{REPRO} {found.point.label} --run {found.run.run_id}"
    asked = Asked()
    run = made(store, results, plan, source, Path(found.run.project), executor, asked)
    with driven(store, run, executor, asked, checked=False) as (_, whole):
        if not whole:
            say(f"stopped, and nothing is compared; again: infx repro {found.point.label}")
            return INTERRUPTED
        run, records = find_run(store, run.run_id), store.records(run.run_id)
        with writing(Path(run.folder)):
            write_reports(run_data(run, plan, records))
    return tell(found, run, records, margin, as_json)
