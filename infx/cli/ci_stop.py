"""infx ci stop: end what a pull request no longer asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.ci_comments import Event
from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.ci.stored import Stored

__all__ = ["register"]


def register(commands: typer.Typer) -> None:
    """Add the command to those of `infx ci`."""
    commands.command(
        "stop",
        help="Stop the runs of a pull request that are under way, but for one that measures all of"
        " --plan: its name is printed.",
    )(_stop)


def _stop(
    event: Event,
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="what is to be measured, of infx ci plan -o"),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="append goes_on, stopped")
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.ci.under_way import goes_on
    from infx.cli.ci_comments import read, told
    from infx.cli.options import results_dir
    from infx.cli.output import say
    from infx.cli.planning_ci import append_outputs
    from infx.plan.saved import read_plan

    said = read(event)
    folder = results_dir(results)
    asked = read_plan(plan) if plan else None
    wanted = {point.point_id for point in asked.points} if asked else set()
    running = _under_way(folder, said.repository.full_name, said.number)
    on = goes_on(running, wanted, asked.origin if asked else None)
    stopped = [run.run_id for run in running if run is not on]
    _cancel(folder, stopped)
    if not running:
        say(f"no run of {said.repository.full_name}#{said.number} is under way in {folder}")
    name = on.run_id if on else ""
    if to:
        append_outputs({"goes_on": name, "stopped": " ".join(stopped)}, to)
    return told(name, "ci-stop", {"goes_on": name or None, "stopped": stopped}, as_json)


def _under_way(results: Path, repository: str, number: int) -> list[Stored]:
    from infx.ci.under_way import left_by
    from infx.cli.stored_runs import stored_runs
    from infx.store import FILE, Store

    runs = left_by(stored_runs(results), repository, number)
    if not runs:
        return []
    with Store(results / FILE) as store:
        running = {row.run_id for row in store.runs() if row.state == "running"}
    return [run for run in runs if run.run_id in running]


def _cancel(results: Path, names: list[str]) -> None:
    from infx.cli.cancel import stop
    from infx.cli.options import existing_store
    from infx.cli.output import say
    from infx.store import find_run

    if not names:
        return
    with existing_store(results) as store:
        for name in names:
            say(f"run {name}: {stop(store, find_run(store, name))}")
