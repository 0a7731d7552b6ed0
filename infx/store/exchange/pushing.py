"""Pushing runs to a place, and publishing what they measured as its live curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import UsageError
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.store.exchange.lineage import keep_lineage
from infx.store.exchange.outgoing import Outgoing, Pushed, outgoing, push_run
from infx.store.exchange.parcel import Progress
from infx.store.exchange.places import Box, Place
from infx.store.gather import Judge, read_run
from infx.store.live import (
    LIVE,
    Live,
    LivePoint,
    check_whole,
    planned,
    published,
    read_live,
    with_entries,
    write_live,
)
from infx.store.rows import RunRow
from infx.store.store import Store
from infx.store.writing import writing

__all__ = ["Guard", "Sent", "push"]

Guard = Callable[[Sequence[Point], Sequence[Point]], tuple[Finding, ...]]
"""Says what speaks against publishing the second points where the first are live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of each run; ``live`` are the live curves after a publish. ``refused`` says why
    nothing was done."""

    pushed: tuple[Pushed, ...] = ()
    live: Live | None = None
    refused: tuple[Finding, ...] = ()


def push(
    store: Store,
    place: Place,
    runs: Sequence[RunRow],
    judge: Judge,
    *,
    light: bool = False,
    guard: Guard | None = None,
    plan: Plan | None = None,
    progress: Progress = lambda *_: None,
) -> Sent:
    """Bring runs to a place; with a ``guard`` their entries' live curves are what they measured, or
    what ``plan`` reuses.

    The place has all of the runs and the live curves afterwards, or neither is published. Errors:
    see `Place.change`, `outgoing.push_run`, `live.published`, `live.planned`.
    """
    points = _to_publish(store, runs, plan) if guard else ()
    sources = {one.run_id for one in points} - {run.run_id for run in runs}
    named_too = [run for run in store.runs() if run.run_id in sources]
    mine = [outgoing(store, run, judge, light=light) for run in (*runs, *named_too)]

    def use(box: Box) -> Sent:
        return _sent(box, mine, points, guard, progress)

    sent = place.change(use)
    _remember(mine, sent.pushed)
    if sent.live is not None:
        with writing(store.path.parent):
            write_live(sent.live, store.path.parent / LIVE)
    return sent


def _sent(
    box: Box,
    mine: Sequence[Outgoing],
    points: Sequence[LivePoint],
    guard: Guard | None,
    progress: Progress,
) -> Sent:
    live = read_live(box.get(LIVE))
    if guard and (refused := guard(live.points, [one.point for one in points])):
        return Sent(refused=refused)
    pushed = tuple(push_run(box, one, progress) for one in mine)
    if guard is None:
        return Sent(pushed=pushed)
    after = with_entries(live, points)
    if after != live:
        part = box.scratch / LIVE
        write_live(after, part)
        box.put(LIVE, part)
    return Sent(pushed=pushed, live=after)


def _to_publish(store: Store, runs: Sequence[RunRow], plan: Plan | None) -> tuple[LivePoint, ...]:
    """Return what the runs publish together; of a point that several hold the last run's. A
    ``plan`` says by itself which points are published, and from which runs."""
    for run in runs:
        _check_ended(store, run)
    if plan:
        found = planned(plan, store.records)
    else:
        own = [(run.run_id, _plan_of(run)) for run in runs]
        told = [point for each in own for point in published(*each, store.records)]
        found = tuple({one.point.point_id: one for one in told}.values())
    sources = {one.run_id for one in found}
    for run in (run for run in store.runs() if run.run_id in sources):
        check_whole(_plan_of(run), f"run {run.run_id}")
    return found


def _plan_of(run: RunRow) -> Plan:
    return read_run(Path(run.folder))[1]


def _check_ended(store: Store, run: RunRow) -> None:
    if store.attempts(run.run_id, open_only=True):
        text = f"run {run.run_id} is under way"
        raise UsageError("not-publishable", text, hint=f"infx ci wait {run.run_id}")


def _remember(mine: Sequence[Outgoing], pushed: Sequence[Pushed]) -> None:
    """Write down which states are in a place now: what comes from them later is newer."""
    for run, told in zip(mine, pushed, strict=False):
        if told.state.digest == run.state.digest:
            with writing(run.folder):
                keep_lineage(run.folder, told.state.descent)
