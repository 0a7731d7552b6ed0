"""infx compare: by how much each figure changed between two arms, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.analysis.compare import Compared
    from infx.analysis.pairing import Seen
    from infx.store import RunRow, Store

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare", help="Say by how much each figure changed between two arms.")(_compare)


def _compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN…]",
            help="two runs, A and B; with --axis one run (default: last), or repeats of it",
            show_default=False,
        ),
    ] = None,
    axis: Annotated[
        str | None,
        typer.Option(
            "--axis", metavar="NAME", help="compare points of a run that differ in this axis alone"
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.comparing import show
    from infx.cli.options import existing_store, results_dir
    from infx.cli.output import emit

    names, name = _names(runs or [], axis), _axis(axis)
    with existing_store(results_dir(results)) as store:
        seen = [_seen(store, run) for run in _runs(store, names)]
    found = _found(seen, name)
    if as_json:
        emit("compare", found)
    else:
        show(found)
    return 0


def _names(runs: Sequence[str], axis: str | None) -> Sequence[str]:
    from infx.domain.errors import UsageError

    if axis is None and len(runs) != 2:
        text = f"expected two runs, or an axis; got {len(runs)} and no axis"
        hint = "infx compare RUN_A RUN_B, or infx compare [RUN] --axis mono"
        raise UsageError("bad-option", text, hint=hint)
    return runs or ["last"]


def _axis(name: str | None) -> str | None:
    """Return the axis in its Python spelling. Raises UsageError for one that is no server's."""
    from infx.config.suggestions import did_you_mean
    from infx.domain.axes import kebab, snake
    from infx.domain.errors import UsageError
    from infx.domain.point import SERVER_AXES

    if name is None or snake(name) in SERVER_AXES:
        return None if name is None else snake(name)
    hint = did_you_mean(name, map(kebab, SERVER_AXES))
    raise UsageError("bad-option", f"{name!r} is not an axis of a server", hint=hint)


def _runs(store: Store, names: Sequence[str]) -> list[RunRow]:
    from infx.domain.errors import UsageError
    from infx.store import find_run

    rows = [find_run(store, name) for name in names]
    if len({row.run_id for row in rows}) < len(rows):
        text = f"{', '.join(names)} name one run twice"
        raise UsageError("bad-option", text, hint="list runs with infx status")
    return rows


def _seen(store: Store, run: RunRow) -> list[Seen]:
    """Return the run's points, each as often as its plan measures it, and those that it reuses."""
    from pathlib import Path

    from infx.analysis.pairing import Seen
    from infx.cli.reusing import with_reused
    from infx.domain.status import PENDING
    from infx.store import read_run

    folder = Path(run.folder)
    plan = read_run(folder)[1]
    status = {row.key: row.status for row in store.points(run.run_id)}
    records = {(r.attempt.job_id, r.point.point_id): r for r in store.records(run.run_id)}
    own = [
        Seen(
            run_id=run.run_id,
            folder=folder,
            point=point,
            status=status.get((job.job_id, point.point_id), PENDING),
            record=records.get((job.job_id, point.point_id)),
            repeat=job.repeat,
            group=job.group,
        )
        for job in plan.jobs
        for point in job.points
    ]
    reused = with_reused(store, folder, plan, ())
    return own + [
        Seen(
            run_id=run.run_id,
            folder=folder,
            point=record.point,
            status=record.status,
            record=record,
            repeat=record.attempt.repeat,
        )
        for record in reused
    ]


def _found(seen: Sequence[Sequence[Seen]], axis: str | None) -> Compared:
    """Compare. Raises UsageError where numpy is missing, which intervals are drawn with."""
    from infx.analysis.compare import compare_axis, compare_runs
    from infx.cli.boundary import needing

    with needing("numpy", "infx compare", "bench"):
        if axis:
            return compare_axis([one for run in seen for one in run], axis)
        return compare_runs(*seen)
