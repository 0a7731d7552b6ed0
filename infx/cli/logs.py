"""infx logs: what a point's server, client or evaluation wrote."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from infx.store import PointRow, RunRow, Store

__all__ = ["register"]

FOLLOW_S = 0.5


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "logs", help="Print a log of a point's newest attempt (default: the last one to begin)."
    )(_logs)


def _logs(
    run: Run,
    point: Annotated[str, typer.Argument(metavar="POINT", help="its label or its beginning")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="go on as it grows")] = False,
    server: Annotated[bool, typer.Option("--server", help="the engine's log")] = False,
    client: Annotated[bool, typer.Option("--client", help="aiperf's log")] = False,
    evaluation: Annotated[bool, typer.Option("--eval", help="lm-eval's log")] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import emit
    from infx.store import find_point, find_run

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        found = find_point(store.points(row.run_id), point)
        attempt = _newest(store, row, found)
    kind = "server" if server else "client" if client else "eval" if evaluation else ""
    path = _path(attempt, found.label, kind)
    if as_json:
        text = path.read_text(errors="replace")
        emit("logs", {"point": found.label, "file": str(path), "text": text})
        return 0
    _print(path, row, follow)
    return 0


def _newest(store: Store, run: RunRow, point: PointRow) -> Path:
    """Return the folder of the newest attempt of the point's job."""
    from infx.domain.errors import UsageError
    from infx.store import attempt_dir, read_run

    plan = read_run(Path(run.folder))[1]
    job = next(job for job in plan.jobs if job.job_id == point.job_id)
    numbers = [a.number for a in store.attempts(run.run_id) if a.job_id == point.job_id]
    if not numbers:
        raise UsageError("unknown-point", f"{point.label} has no attempt yet, so no log")
    return attempt_dir(Path(run.folder), job, max(numbers))


def _path(attempt: Path, label: str, kind: str) -> Path:
    """Return the log of that kind; without a kind the deepest one that the attempt got to."""
    from infx.domain.errors import UsageError

    folder = attempt / "points" / label
    logs = {
        "eval": folder / "lm-eval" / "lm-eval.log",
        "client": folder / "aiperf" / "aiperf.log",
        "server": attempt / "server.log",
        "job": attempt / "infx.log",
    }
    wanted = [logs[kind]] if kind else list(logs.values())
    for path in wanted:
        if path.is_file():
            return path
    raise UsageError("unknown-point", f"{label} has no such log yet: {wanted[0]}")


def _print(path: Path, run: RunRow, follow: bool) -> None:
    from infx.store import holder

    with path.open(errors="replace") as file:
        while True:
            driven = bool(holder(Path(run.folder)))
            sys.stdout.write(file.read())
            sys.stdout.flush()
            if not (follow and driven):
                return
            time.sleep(FOLLOW_S)
