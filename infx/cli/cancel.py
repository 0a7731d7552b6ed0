"""infx cancel: stop a run from another shell, as Ctrl-C would."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from infx.store import RunRow, Store

__all__ = ["register", "stop"]

PATIENCE_S = 300.0
"""Longer than a job may take to stop its client and its server, and a scheduler to tell."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cancel", help="Stop a run; its evidence is kept.")(_cancel)


def _cancel(run: Run, results: Results = None, as_json: Json = False) -> int:
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import emit
    from infx.store import find_run, holder

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        driver = holder(Path(row.folder))
        sentence = stop(store, row)
    if as_json:
        emit("cancel", {"run_id": row.run_id, "driver": driver or None, "sentence": sentence})
    else:
        print(f"run {row.run_id}: {sentence}")
    return 0


def stop(store: Store, run: RunRow) -> str:
    """Stop a run, whoever drives it, or nobody; return what was done. Raises InfraError where its
    driver or its scheduler does not answer.

    Another may begin to drive it, or let go of it, at any moment: then that is what is met next.
    """
    from infx.domain.errors import UsageError
    from infx.store import holder

    while True:
        if driver := holder(Path(run.folder)):
            done = _ask(Path(run.folder), driver)
            if not store.attempts(run.run_id, open_only=True):
                return done
            continue
        try:
            return _stop_jobs(store, run)
        except UsageError as error:
            if error.code != "run-active":
                raise


def _ask(folder: Path, driver: str) -> str:
    from infx.cli.output import say
    from infx.domain.errors import InfraError
    from infx.launch.stop import CANCEL_FILE
    from infx.store import holder

    say(f"asked {driver}; waiting until its jobs have ended and told what they measured")
    deadline = time.monotonic() + PATIENCE_S
    while holder(folder):
        (folder / CANCEL_FILE).touch()  # again and again: a drive that begins removes old ones
        if time.monotonic() > deadline:
            hint = "look at what it says; it stops as soon as it can"
            message = f"{driver} did not stop in {PATIENCE_S:.0f} s"
            raise InfraError("store-busy", message, hint=hint)
        time.sleep(0.2)
    return f"stopped; it was driven by {driver}"


def _stop_jobs(store: Store, run: RunRow) -> str:
    """Stop the jobs that go on without a driver, gather what they left; say what was done."""
    from infx.analysis.validity import judge
    from infx.cli.driving import executor_of
    from infx.cli.options import project_of
    from infx.cli.progress import printer
    from infx.launch.sweep import Asked, Sweep
    from infx.store import RunLock, gather

    going = len(store.attempts(run.run_id, open_only=True))
    if not going and all(point.status.terminal for point in store.points(run.run_id)):
        return "it had ended already"
    if not going and run.state != "running":
        return "nobody drives it, and no job of it is open"
    folder = Path(run.folder)
    with RunLock(folder), printer() as observer:
        plan = gather(store, folder, judge).plan
        executor = executor_of(plan, project_of(run))
        executor.check([])  # a scheduler that is not there cancels nothing
        Sweep(store, run, plan, executor, judge, observer, Asked(cancel=True)).run()
    jobs = f"{going} open jobs cancelled" if going != 1 else "its open job cancelled"
    return f"nobody drove it; {jobs}"
