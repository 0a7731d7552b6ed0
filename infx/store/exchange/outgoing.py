"""Runs into a place: the newest state of each stands there, with every file that anybody had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from infx.domain.errors import ConfigError, UsageError
from infx.domain.record import PointRecord
from infx.store.exchange.light import lightened
from infx.store.exchange.lineage import lineage_of
from infx.store.exchange.parcel import Carried, Entry, Header, Progress, files_of, pack, read_header
from infx.store.exchange.places import Box, parcel_name
from infx.store.exchange.state import Relation, State, relation, state_of
from infx.store.gather import Judge, read_point
from infx.store.layout import JUDGED, POINT, RUN
from infx.store.rows import RunRow
from infx.store.store import Store

__all__ = ["Outgoing", "Pushed", "apart", "outgoing", "push_run"]


What = Literal["new", "newer", "more files", "kept", "older"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A run as this machine has it."""

    folder: Path
    state: State
    entries: tuple[Entry, ...]
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What became of a run, and how it stands in the place: ``kept`` when that had all of it.

    ``size_bytes`` is its parcel's, ``largest`` its largest files and their sizes.
    """

    run_id: str
    what: What
    state: State
    size_bytes: int
    left: Mapping[str, int] = field(default_factory=dict)
    largest: tuple[tuple[str, int], ...] = ()


def outgoing(store: Store, run: RunRow, judge: Judge, *, light: bool) -> Outgoing:
    """Return a run of the store, as it is now. Raises UsageError ``not-a-run`` where its folder is
    gone."""
    folder = Path(run.folder)
    if not folder.is_dir():
        hint = "put it back, or pull the run from where it was pushed to"
        raise UsageError(
            "not-a-run", f"the files of run {run.run_id} are gone: {folder}", hint=hint
        )
    state = state_of(store, run.run_id, lineage_of(folder))
    entries, left = [*files_of(folder)], dict[str, int]()
    if light:
        judged = _judged(folder, entries, store.records(run.run_id), judge)
        entries, left = lightened(entries, judged)
    return Outgoing(folder=folder, state=state, entries=tuple(entries), left=left)


def _judged(
    folder: Path, entries: Sequence[Entry], stored: Sequence[PointRecord], judge: Judge
) -> dict[str, PointRecord]:
    """Return the record of each point.json as it stands, or as it is judged now where another
    attempt's stands."""
    known = {_identity(record): record for record in stored}
    found: dict[str, PointRecord] = {}
    for entry in entries:
        if Path(entry.name).name == POINT:
            try:
                record = read_point(folder / entry.name, folder, lambda record, _: record)
                stands = known.get(_identity(record))
                found[entry.name] = stands or read_point(folder / entry.name, folder, judge)
            except (OSError, ConfigError):  # it is told of when the run is gathered
                continue
    return found


def _identity(record: PointRecord) -> tuple[str, str, int]:
    return record.attempt.job_id, record.point.point_id, record.attempt.number


def push_run(box: Box, mine: Outgoing, progress: Progress) -> Pushed:
    """Put a run into an open place. Raises UsageError ``run-diverged``, or as `parcel.read_header`
    for a parcel there that cannot be read."""
    name = parcel_name(mine.state.run_id)
    there = box.get(name)
    old = read_header(there) if there else None
    how: Relation = relation(mine.state, old.state) if old else "newer"
    if old and how == "apart":
        raise apart(mine.state, old.state, "the place")
    if old and there and how != "newer" and not _adds(mine, old, how):
        return _pushed("older" if how == "older" else "kept", there.stat().st_size, old)
    header, entries, carried = _united(mine, old, there, how)
    part = box.scratch / f"{mine.state.run_id}.part"
    pack(part, header, entries, carried, progress)
    size = part.stat().st_size
    box.put(name, part)
    return _pushed(_what(old, how), size, header)


def _what(old: Header | None, how: Relation) -> What:
    return "new" if old is None else "newer" if how == "newer" else "more files"


def _pushed(what: What, size: int, of: Header) -> Pushed:
    return Pushed(
        run_id=of.state.run_id,
        what=what,
        state=of.state,
        size_bytes=size,
        left=of.left,
        largest=tuple(sorted(of.files.items(), key=lambda pair: -pair[1])[:3]),
    )


def _adds(mine: Outgoing, old: Header, how: Relation) -> bool:
    """Return True when the place lacks a file, or has another one in the same state of the run.

    A verdict is needed only where its evidence is lacking; what names places differs anyhow.
    """
    entries = (entry for entry in mine.entries if entry.name != RUN)
    wanted = [e for e in entries if old.left or not e.name.endswith(f"/{JUDGED}")]
    if how == "older":
        return any(entry.name not in old.files for entry in wanted)
    return any(old.files.get(entry.name) != entry.size for entry in wanted)


def _united(
    mine: Outgoing, old: Header | None, there: Path | None, how: Relation
) -> tuple[Header, list[Entry], Carried | None]:
    """Return the parcel with all files of both; where both have one, that of the newer state."""
    ours, theirs = {e.name: e for e in mine.entries}, dict(old.files if old else {})
    if how == "older":
        ours = {name: entry for name, entry in ours.items() if name not in theirs}
    theirs = {name: size for name, size in theirs.items() if name not in ours}
    files = {name: entry.size for name, entry in ours.items()} | theirs
    left = {n: s for n, s in {**(old.left if old else {}), **mine.left}.items() if n not in files}
    state = _descended(mine.state, old.state, how) if old else mine.state
    carried = Carried(parcel=there, sizes=theirs) if there and theirs else None
    return Header(state=state, files=files, left=left), [*ours.values()], carried


def _descended(mine: State, theirs: State, how: Relation) -> State:
    """Return the newer of two states, which knows the other as one that it comes from."""
    newer, other = (theirs, mine) if how == "older" else (mine, theirs)
    known = dict.fromkeys((*other.descent, *newer.lineage))
    return replace(newer, lineage=tuple(digest for digest in known if digest != newer.digest))


def apart(mine: State, theirs: State, where: str) -> UsageError:
    """Return the error of two states of which each knows what the other does not."""
    here = sorted(mine.attempts.keys() - theirs.attempts.keys())
    there = sorted(theirs.attempts.keys() - mine.attempts.keys())
    text = (
        f"run {mine.run_id} went on here and elsewhere: "
        f"only here {', '.join(here[:3]) or 'other results'}, "
        f"only in {where} {', '.join(there[:3]) or 'other results'}"
    )
    hint = "keep both: push to another place, or pull into another folder with --results"
    return UsageError("run-diverged", text, hint=hint)
