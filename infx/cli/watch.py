"""infx watch: follow a run that another process drives. A view: ending it ends nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from infx.domain.plan import Plan
    from infx.store import RunRow, Store

__all__ = ["register"]

TICK_S = 1.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch", help="Follow a run; closing it changes nothing.")(_watch)


def _watch(run: Run = "last", results: Results = None, as_json: Json = False) -> int:
    from infx.cli.options import existing_store, results_dir
    from infx.cli.outcome import counted
    from infx.cli.output import emit
    from infx.store import find_run, read_run

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        _follow(store, row, read_run(Path(row.folder))[1])
        points = store.points(row.run_id)
        if as_json:
            emit("watch", {"run": row, "points": points})
        else:
            print(f"run {row.run_id}: {counted(points)}")
    return 0


def _follow(store: Store, run: RunRow, plan: Plan) -> None:
    from infx.cli.progress import printer
    from infx.launch.view import snapshot
    from infx.store import holder

    with printer() as observer:
        before: dict[str, tuple[str, str]] = {}
        while True:
            driven = bool(holder(Path(run.folder)))
            board = snapshot(store, run, plan)
            if not driven and not board.active:
                return
            if not driven and not before:
                observer.notice(f"nobody drives it; infx resume {run.run_id} does")
            for line in board.lines.values():
                now = (line.state, line.phase)
                if before.get(line.job.job_id) not in (None, now):
                    observer.notice(f"{line.job.name}: {': '.join(filter(None, now))}")
                before[line.job.job_id] = now
            observer.draw(board)
            if not driven and board.all_told:
                observer.notice("every job has told its end")
                return
            time.sleep(TICK_S)
