"""infx gather: read a run's folder into the store, every point judged anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.store import Store

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gather", help="Read a run's folder into the store and judge it anew.")(_gather)


def _gather(
    run: Annotated[str, typer.Argument(metavar="RUN|DIR", help="a run's name, or its folder")],
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.analysis.validity import judge
    from infx.cli.options import results_dir
    from infx.cli.outcome import counted
    from infx.cli.output import emit, say
    from infx.launch.runs import open_store
    from infx.store import RunLock, gather

    with open_store(results_dir(results)) as store:
        folder = _folder(store, run)
        with RunLock(folder):
            found = gather(store, folder, judge)
        points = store.points(found.run.run_id)
    if as_json:
        data = {"run": found.run, "points": points}
        emit("gather", data, ok=not found.findings, diagnostics=found.findings)
    else:
        for finding in found.findings:
            say(str(finding))
        print(f"run {found.run.run_id}: {counted(points)}")
    return 1 if found.findings else 0


def _folder(store: Store, run: str) -> Path:
    from infx.store import find_run, read_run

    if "/" in run or Path(run).is_dir():
        folder = Path(run).absolute()
        read_run(folder)
        return folder
    return Path(find_run(store, run).folder)
