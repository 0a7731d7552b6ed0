"""infx status: the runs, or the points of one run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.store import PointRow, RunRow, Store

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", help="List the runs, or the points of one run.")(_status)


def _status(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="a run's name, its beginning, or last")
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.options import existing_store, results_dir

    with existing_store(results_dir(results)) as store:
        if run is None:
            return _list_runs(store, as_json)
        return _show_run(store, run, as_json)


def _list_runs(store: Store, as_json: bool) -> int:
    from infx.cli.output import emit, table

    runs = [_summary(run, store.points(run.run_id)) for run in reversed(store.runs())]
    if as_json:
        emit("status", {"runs": runs})
        return 0
    headers = ("RUN", "STATE", "POINTS", "STARTED", "SOURCE")
    rows = [
        (
            r["run_id"],
            r["state"],
            f"{r['ok']}/{r['points']} ok",
            _clock(r["created_s"]),
            r["source"],
        )
        for r in runs
    ]
    table(headers, rows)
    return 0


def _show_run(store: Store, name: str, as_json: bool) -> int:
    from infx.cli.outcome import counted
    from infx.cli.output import emit, table
    from infx.store import find_run, holder

    run = find_run(store, name)
    points = store.points(run.run_id)
    summary = _summary(run, points)
    driver = holder(Path(run.folder))
    if as_json:
        data = summary | {"driver": driver or None, "points": points}
        emit("status", data | {"attempts": store.attempts(run.run_id)})
        return 0
    by = f", driven by {driver}" if driver else ""
    print(f"run {run.run_id} {summary['state']}{by}: {counted(points)}")
    print(f"files: {run.folder}\n")
    rows = [(p.label, str(p.status), p.attempt or "", p.status.sentence) for p in points]
    table(("POINT", "STATUS", "ATTEMPT", "WHY"), rows)
    return 0


def _summary(run: RunRow, points: Sequence[PointRow]) -> dict[str, Any]:
    from infx.launch.view import standing
    from infx.store import kept

    return {
        "run_id": run.run_id,
        "state": standing(run, all(kept(point.status) for point in points)),
        "points": len(points),
        "ok": sum(point.status.state == "ok" for point in points),
        "created_s": run.created_s,
        "ended_s": run.ended_s or None,
        "source": run.source,
        "folder": run.folder,
    }


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
