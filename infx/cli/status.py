"""infx status: the runs, or the points of one run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.domain.record import Attempt
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

    runs = [_summary(store, run) for run in reversed(store.runs())]
    if as_json:
        emit("status", {"runs": runs})
        return 0
    headers = ("RUN", "STATE", "ON", "POINTS", "STARTED", "SOURCE")
    rows = [
        (
            r["run_id"],
            r["state"],
            r["executor"],
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
    from infx.cli.reusing import reused_from
    from infx.store import find_run, holder

    run = find_run(store, name)
    points, attempts = store.points(run.run_id), store.attempts(run.run_id)
    summary = _summary(store, run)
    driver, reused = holder(Path(run.folder)), reused_from(Path(run.folder))
    if as_json:
        data = summary | {"driver": driver or None, "points": points, "reused": reused}
        emit("status", data | {"attempts": attempts, "endings": store.endings(run.run_id)})
        return 0
    by = f", driven by {driver}" if driver else ""
    print(f"run {run.run_id} {summary['state']}{by}: {counted(points)}")
    print(f"files: {run.folder}\n")
    rows = [(p.shown, str(p.status), p.attempt or "", p.status.sentence) for p in points]
    table(("POINT", "STATUS", "ATTEMPT", "WHY"), rows)
    for name, number in reused.items():
        print(f"{number} more reused from run {name}")
    if summary["state"] == "detached":
        told = "were cancelled" if run.state == "cancelled" else "go on"
        print(f"\nits jobs {told}; no infx sees them end: infx resume {run.run_id} does")
    _show_queue(attempts, points)
    return 0


def _show_queue(attempts: Sequence[Attempt], points: Sequence[PointRow]) -> None:
    """Print the open attempts that a scheduler knows: their points, and its names for them."""
    from infx.cli.output import table

    open_ = [a for a in attempts if a.batch and not a.ended_s]
    if open_:
        print()
        rows = [
            (_first(points, a), a.scheduler_id or "unknown", _clock(a.started_s), a.unique_name)
            for a in open_
        ]
        table(("OPEN JOB OF", "SCHEDULER ID", "SUBMITTED", "ATTEMPT"), rows)


def _first(points: Sequence[PointRow], attempt: Attempt) -> str:
    """Return the label of the first point of an attempt's job, and how many others it has."""
    labels = [point.shown for point in points if point.job_id == attempt.job_id]
    return labels[0] + (f" and {len(labels) - 1} more" if len(labels) > 1 else "")


def _summary(store: Store, run: RunRow) -> dict[str, Any]:
    from infx.launch.view import standing
    from infx.store import kept

    points = store.points(run.run_id)
    open_ = store.attempts(run.run_id, open_only=True)
    return {
        "run_id": run.run_id,
        "state": standing(run, all(kept(point.status) for point in points), open_),
        "executor": run.executor,
        "points": len(points),
        "ok": sum(point.status.state == "ok" for point in points),
        "created_s": run.created_s,
        "ended_s": run.ended_s or None,
        "source": run.source,
        "folder": run.folder,
    }


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
