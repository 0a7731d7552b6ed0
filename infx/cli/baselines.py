"""What --baseline names, for every command that takes it: runs, or the live curves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.point import Point
    from infx.report.model import RunData
    from infx.store import Store
    from infx.store.live import Live

__all__ = ["LIVE_CURVES", "baseline_runs", "live_curves", "live_runs", "only"]

LIVE_CURVES = "live"
"""What --baseline calls the published points of the same entries."""


def baseline_runs(store: Store, names: Sequence[str], mine: Sequence[RunData]) -> list[RunData]:
    """Return the runs that ``names`` are, ``live`` for those that the entries of ``mine`` are shown
    from; of these their live points alone.

    Raises UsageError ``unknown-run``, or ``bad-option`` where no live curve of them is here.
    """
    from infx.cli.reporting import stored_run
    from infx.store import find_run

    found: list[RunData] = []
    for name in names:
        if name == LIVE_CURVES:
            found += _live(store, mine)
        else:
            found.append(stored_run(store, find_run(store, name)))
    return found


def _live(store: Store, mine: Sequence[RunData]) -> list[RunData]:
    from infx.domain.errors import UsageError

    if found := live_runs(store, mine):
        return found
    entries = ", ".join(sorted(_entries(mine)))
    if live_curves(store).runs_of(_entries(mine)):
        text = f"what is live for {entries} is this run itself"
        raise UsageError("bad-option", text, hint="name an earlier run: --baseline RUN")
    text = f"nothing is live for {entries}: {_file(store)} names no run"
    hint = "bring the live curves here: infx store pull PLACE"
    raise UsageError("bad-option", text, hint=hint)


def live_runs(store: Store, mine: Sequence[RunData]) -> list[RunData]:
    """Return the runs that the entries of ``mine`` are shown from, each with its live points alone,
    and without those of ``mine``; none where nothing is live. Raises UsageError ``unknown-run`` for
    one that is not here."""
    shown = live_curves(store).runs_of(_entries(mine))
    own = {run.facts.run_id for run in mine}
    return [_shown(store, run_id, ids) for run_id, ids in shown.items() if run_id not in own]


def live_curves(store: Store) -> Live:
    """Return the live curves that were pulled to, or published from, the store's folder."""
    from infx.store.live import read_live

    return read_live(_file(store))


def _file(store: Store) -> Path:
    from infx.store.live import LIVE

    return store.path.parent / LIVE


def _entries(runs: Sequence[RunData]) -> set[str]:
    return {point.entry for run in runs for point in run.plan.expected}


def _shown(store: Store, run_id: str, ids: Collection[str]) -> RunData:
    from infx.cli.reporting import stored_run
    from infx.domain.errors import UsageError

    row = next((run for run in store.runs() if run.run_id == run_id), None)
    if row is None:
        hint = f"bring it here: infx store pull PLACE {run_id}"
        raise UsageError("unknown-run", f"run {run_id}, which is live, is not here", hint=hint)
    return only(stored_run(store, row), lambda point: point.point_id in ids)


def only(run: RunData, wanted: Callable[[Point], bool]) -> RunData:
    """Return a run as if these were all its points."""
    plan = replace(
        run.plan,
        points=tuple(point for point in run.plan.points if wanted(point)),
        reused=tuple(one for one in run.plan.reused if wanted(one.point)),
    )
    return replace(run, plan=plan, records=tuple(r for r in run.records if wanted(r.point)))
