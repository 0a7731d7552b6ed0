"""infx cancel: stop a run from another shell, as Ctrl-C would."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from infx.cli.options import Json, Results, Run

__all__ = ["register"]

PATIENCE_S = 120.0
"""Longer than a job may take to stop its client and its server."""


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
        sentence = _ask(Path(row.folder), driver) if driver else _forget(store, row.run_id)
    if as_json:
        emit("cancel", {"run_id": row.run_id, "driver": driver or None, "sentence": sentence})
    else:
        print(f"run {row.run_id}: {sentence}")
    return 0


def _ask(folder: Path, driver: str) -> str:
    from infx.domain.errors import InfraError
    from infx.launch.stop import CANCEL_FILE
    from infx.store import holder

    (folder / CANCEL_FILE).touch()
    deadline = time.monotonic() + PATIENCE_S
    while holder(folder):
        if time.monotonic() > deadline:
            raise InfraError("store-busy", f"{driver} did not stop in {PATIENCE_S:.0f} s")
        time.sleep(0.2)
    return f"stopped; it was driven by {driver}"


def _forget(store: object, run_id: str) -> str:
    from infx.store import Store

    assert isinstance(store, Store)
    unfinished = [point for point in store.points(run_id) if not point.status.terminal]
    if not unfinished:
        return "it had ended already"
    store.set_state(run_id, "cancelled")
    return "nobody drives it; marked as cancelled"
