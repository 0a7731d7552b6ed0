"""Pushing runs and live curves to a place, and pulling them from one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import UsageError
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from infx.domain.point import Point
from infx.store.gather import Judge, read_run
from infx.store.git_place import GitPlace
from infx.store.lineage import keep_lineage
from infx.store.live import (
    Live,
    LivePoint,
    planned,
    published,
    read_live,
    with_entries,
    write_live,
)
from infx.store.names import LAST, named
from infx.store.parcel import Progress
from infx.store.places import (
    LIVE,
    ArchivePlace,
    Box,
    FolderPlace,
    Place,
    locked,
    parcel_name,
    run_of,
)
from infx.store.pull import STAGED, Pulled, pull_run
from infx.store.push import Outgoing, Pushed, outgoing, push_run
from infx.store.rows import RunRow
from infx.store.store import Store
from infx.store.writing import writing

__all__ = ["Guard", "Incoming", "Sent", "place_of", "pull", "push"]

Guard = Callable[[Sequence[Point], Sequence[Point]], tuple[Finding, ...]]
"""Says what speaks against publishing the second points where the first are live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of each run; ``live`` are the live curves after a publish. ``refused`` says why
    nothing was done."""

    pushed: tuple[Pushed, ...] = ()
    live: Live | None = None
    refused: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What became of each run, and the live curves of the place, if it has any."""

    pulled: tuple[Pulled, ...]
    live: Live | None


def place_of(text: str, folder: Path, remotes: Sequence[str]) -> Place:
    """Return the place that ``text`` names, as seen from ``folder``, where git knows ``remotes``.

    ``git:BRANCH`` or ``git:REMOTE/BRANCH``, a .tar.gz file, or a folder. Raises UsageError.
    """
    if text.startswith("git:"):
        branch = text.removeprefix("git:")
        first, _, rest = branch.partition("/")
        on_remote = first in remotes and bool(rest)
        return GitPlace(folder, first if on_remote else "", rest if on_remote else branch)
    if "://" in text:
        hint = "name a folder, a .tar.gz file, git:BRANCH or git:REMOTE/BRANCH"
        raise UsageError("not-a-place", f"{text} is an address", hint=hint)
    path = folder / text
    return ArchivePlace(path) if text.endswith((".tar.gz", ".tgz")) else FolderPlace(path)


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
    see `Place.change`, `push.push_run`, `live.published`, `live.planned`.
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
        return planned(plan, store.records)
    found: dict[str, LivePoint] = {}
    for run in runs:
        own = read_run(Path(run.folder))[1]
        found |= {p.point.point_id: p for p in published(run.run_id, own, store.records)}
    return tuple(found.values())


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


def pull(
    store: Store,
    place: Place,
    names: Sequence[str],
    project: Path,
    progress: Progress = lambda *_: None,
) -> Incoming:
    """Bring the named runs of a place beside ``store`` (none is named: all), and its live curves.

    Errors: see `Place.read`, `pull.pull_run`; UsageError ``unknown-run``.
    """
    results = store.path.parent

    def use(box: Box) -> Incoming:
        parcels = {run_id: name for name in box.names() if (run_id := run_of(name))}
        chosen = [_named(text, parcels, place.shown) for text in names] or sorted(parcels)
        pulled = []
        for run_id in dict.fromkeys(chosen):
            path = box.get(parcel_name(run_id))
            assert path is not None  # the place has listed it
            pulled.append(pull_run(store, path, run_id, project, progress))
        return Incoming(pulled=tuple(pulled), live=_live(box, results))

    with writing(results), locked(results):
        for left in results.glob(f"{STAGED}*"):  # of a pull that was killed
            shutil.rmtree(left, ignore_errors=True)
        return place.read(use)


def _named(text: str, parcels: dict[str, str], place: str) -> str:
    newest = text == LAST and parcels
    return max(parcels) if newest else named(text, parcels, "unknown-run", f"run in {place}")


def _live(box: Box, results: Path) -> Live | None:
    path = box.get(LIVE)
    if path is None:
        return None
    live = read_live(path)
    write_live(live, results / LIVE)
    return live
