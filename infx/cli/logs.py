"""infx logs: what a point's server, client or evaluation wrote."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results, Run

if TYPE_CHECKING:
    from pathlib import Path

    from infx.launch.logs import Log

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
    from infx.cli.options import existing_store, project_of, results_dir
    from infx.cli.output import emit
    from infx.cli.planning import cluster_named
    from infx.launch.logs import Kind, find_log
    from infx.store import find_point, find_run

    kind: Kind = "server" if server else "client" if client else "eval" if evaluation else ""
    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        found = find_point(store.points(row.run_id), point)
        project = project_of(row)
        log = find_log(store, row, found, kind, lambda name: cluster_named(name, project))
        if as_json:
            text = log.path.read_text(errors="replace")
            emit("logs", {"point": found.label, "file": str(log.path), "text": text})
        else:
            _print(log, follow)
    return 0


def _print(log: Log, follow: bool) -> None:
    from infx.cli.output import say

    path, place, grows = log.path, 0, follow
    while True:
        place = _copy(path, place)
        if not grows:
            return
        grows = log.grows()
        if grows:
            time.sleep(FOLLOW_S)
        if (newest := log.newest()) != path:
            _copy(path, place)
            say(f"it goes on in {newest}")
            path, place = newest, 0


def _copy(path: Path, place: int) -> int:
    """Print a log from a place in it on; return its end. It is opened anew each time, since
    fetching it makes another file."""
    with path.open(errors="replace") as file:
        file.seek(place)
        sys.stdout.write(file.read())
        place = file.tell()
    sys.stdout.flush()
    return place
