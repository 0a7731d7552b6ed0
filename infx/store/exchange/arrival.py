"""Runs out of a place: unpacked and checked whole before anything of this machine's is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding, Where
from infx.domain.serial import encode_pretty
from infx.store.exchange.lineage import keep_lineage, lineage_of
from infx.store.exchange.outgoing import What, apart
from infx.store.exchange.parcel import Header, Progress, read_header, unpack
from infx.store.exchange.state import Relation, relation, state_of
from infx.store.gather import read_run
from infx.store.layout import JUDGED, RUN, run_dir
from infx.store.lock import RunLock, holder
from infx.store.rows import RunRow
from infx.store.store import Store
from infx.store.writing import writing

__all__ = ["STAGED", "Pulled", "pull_run"]

STAGED = ".pull-"
"""How folders in a results folder are called in which a run is unpacked before it moves in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """What became of a run; ``elsewhere`` is where it is under way, when that folder is in reach:
    it goes on there."""

    run_id: str
    what: What
    done: tuple[int, int]
    under_way: bool
    elsewhere: str = ""
    executor: str = ""


def pull_run(
    store: Store,
    parcel: Path,
    run_id: str,
    project: Path,
    progress: Progress = lambda *_: None,
) -> Pulled:
    """Bring run ``run_id``, which is in ``parcel``, beside ``store``, or to where the store has it.

    A newer state replaces an older one, never the other way; files that only this machine has stay,
    and what a run lacks that is driven here comes when nobody does.
    ``project`` stands for a project that is not on this machine. Raises UsageError ``run-diverged``
    or ``run-active``, or as `parcel.unpack`.
    """
    header = read_header(parcel)
    if header.state.run_id != run_id:
        raise _bad(parcel, f"it holds run {header.state.run_id}, not {run_id}")
    known = next((run for run in store.runs() if run.run_id == run_id), None)
    folder = _home(store, known, run_id)
    how = _relation(store, known, folder, header)
    if how == "apart":
        raise apart(state_of(store, run_id), header.state, "the place")
    lacking = _lacking(folder, header)
    if known and how in ("same", "newer") and (not lacking or holder(folder)):
        return _pulled(header, "kept" if how == "same" else "older")
    arrival = _Arrival(store, parcel, header, folder, project, progress)
    if not known and (elsewhere := _reachable(header, folder)):
        return arrival.goes_on(elsewhere)
    if not folder.exists() and how != "newer":
        return arrival.moves_in()
    return arrival.joins(lacking if how in ("same", "newer") else None)


def _home(store: Store, known: RunRow | None, run_id: str) -> Path:
    """Return the run's folder: where the store has it, if it is there still."""
    if known and Path(known.folder).is_dir():
        return Path(known.folder)
    return run_dir(store.path.parent.absolute(), run_id)


def _relation(store: Store, known: RunRow | None, folder: Path, header: Header) -> Relation:
    if known is None:
        return "older"
    mine = state_of(store, header.state.run_id, lineage_of(folder))
    return relation(mine, header.state)


def _lacking(folder: Path, header: Header) -> frozenset[str]:
    """Return the files that the run's folder has not; verdicts only where their evidence is not."""
    whole = all((folder / name).is_file() for name in header.left)
    missing = (name for name in header.files if not (folder / name).is_file())
    return frozenset(n for n in missing if not (whole and n.endswith(f"/{JUDGED}")))


def _reachable(header: Header, folder: Path) -> Path | None:
    """Return the folder in which a run goes on, where it is another one of this machine or of a
    disk that both share: its jobs write there, or it is driven there, or a scheduler may have jobs
    of it that were submitted since it was pushed."""
    run = header.state.rows["runs"][0]
    home = Path(str(run.get("folder", "")))
    if home == folder or not home.is_absolute():
        return None
    perhaps = run.get("state") == "running" and run.get("executor") != "local"
    if not (perhaps or header.state.under_way or holder(home)):
        return None
    try:
        return home if read_run(home)[0].run_id == header.state.run_id else None
    except (ConfigError, OSError, UsageError):
        return None


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A parcel, and where its run goes."""

    store: Store
    parcel: Path
    header: Header
    folder: Path
    project: Path
    progress: Progress

    def goes_on(self, home: Path) -> Pulled:
        """Know of the run where its jobs write."""
        unpack(self.parcel, self.folder, lambda _: False, self.progress)  # is it whole?
        self._restore(home)
        return replace(_pulled(self.header, "new"), elsewhere=str(home))

    def moves_in(self) -> Pulled:
        """Make the run's folder."""
        with self._unpacked(None) as staged:
            self.folder.parent.mkdir(exist_ok=True)
            staged.rename(self.folder)
        self._restore(self.folder)
        return _pulled(self.header, "new")

    def joins(self, lacking: frozenset[str] | None) -> Pulled:
        """Add what the run's folder lacks, or, for a newer state (None), put every file there."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with RunLock(self.folder), self._unpacked(lacking) as staged:
            with writing(self.folder):
                _move(staged, self.folder)
            if lacking is None:
                self._restore(self.folder)
        return _pulled(self.header, "newer" if lacking is None else "more files")

    @contextmanager
    def _unpacked(self, lacking: frozenset[str] | None) -> Iterator[Path]:
        """Give a folder, on the same disk, with the files of the parcel."""
        results = self.store.path.parent
        with writing(results), TemporaryDirectory(prefix=STAGED, dir=results) as folder:
            staged = Path(folder) / "run"
            staged.mkdir()
            wanted = (lambda _: True) if lacking is None else lacking.__contains__
            unpack(self.parcel, staged, wanted, self.progress)
            if lacking is None:
                self._check(staged)
            yield staged

    def _check(self, staged: Path) -> None:
        """Raise ConfigError where the files are not of the run that the rows are of; name the
        places of this machine in run.json."""
        try:
            row, plan = read_run(staged)
        except UsageError as error:
            raise _bad(self.parcel, error.message) from error
        jobs = {job["job_id"] for job in self.header.state.rows.get("jobs", ())}
        if row.run_id != self.header.state.run_id or {job.job_id for job in plan.jobs} != jobs:
            raise _bad(self.parcel, f"{RUN} or the plan is of another run")
        here = replace(row, folder=str(self.folder), project=self._project(row.project))
        (staged / RUN).write_text(encode_pretty(here))

    def _project(self, told: str) -> str:
        return told if Path(told).is_dir() else str(self.project)

    def _restore(self, folder: Path) -> None:
        state = self.header.state
        told = str(state.rows["runs"][0].get("project", ""))
        placed = state.placed(str(folder), self._project(told))
        self.store.restore(state.run_id, placed.rows)
        with writing(folder):
            keep_lineage(folder, state.descent)


def _bad(parcel: Path, sentence: str) -> ConfigError:
    hint = "remove it, then push the run again"
    return ConfigError([Finding("bad-parcel", "error", sentence, Where(str(parcel)), hint)])


def _move(staged: Path, folder: Path) -> None:
    """Put every file below ``staged`` in the place of its namesake."""
    for root, _, names in os.walk(staged):
        for name in names:
            path = Path(root) / name
            target = folder / path.relative_to(staged)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _pulled(header: Header, what: What) -> Pulled:
    state = header.state
    executor = str(state.rows["runs"][0].get("executor", ""))
    return Pulled(
        run_id=state.run_id,
        what=what,
        done=state.done,
        under_way=state.under_way,
        executor=executor,
    )
