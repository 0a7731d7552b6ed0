"""infx watch: follow a run that another process drives. A view: ending it ends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from infx.domain.plan import Plan
    from infx.store import RunRow, Store

__all__ = ["register"]


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
    from infx.cli.following import looks
    from infx.cli.progress import printer

    with printer() as observer:
        told = False
        for board, driven in looks(store, run, plan, observer):
            if not driven and not board.active:
                return
            if not driven and not told:
                observer.notice(f"nobody drives it; infx resume {run.run_id} does")
            if not driven and board.all_told:
                observer.notice("every job has told its end")
                return
            told = True
