"""The runs of a store that a bundle tells of: those of a pull request, and those it reuses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from infx.review import gathering
from infx.review.gathering import Swept, revisions

if TYPE_CHECKING:
    from infx.ci.stored import Stored
    from infx.domain.findings import Finding
    from infx.domain.point import Point
    from infx.domain.record import PointRecord
    from infx.store import RunRow, Store

__all__ = ["Found", "Sought", "runs_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is looked for: runs by ``names`` (none: those of the pull request), the one that a
    ``command`` reuses ("": the newest that fits; None: there is no command), with records of these
    ``entries``; ``wants`` are the entries' points at the head."""

    repository: str
    pull_request: int
    names: Sequence[str]
    command: str | None
    entries: Collection[str]
    wants: Sequence[Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The runs, the one that counts first, which records of each stand, and where its files are."""

    runs: tuple[Swept, ...] = ()
    used: dict[str, tuple[PointRecord, ...]]
    folders: dict[str, Path]

    @property
    def counting(self) -> tuple[Swept, ...]:
        """The runs that are judged as a whole: the first, and those of which a record stands."""
        some = (run for n, run in enumerate(self.runs) if not n or self.used[run.run_id])
        return tuple(run for run in some if not run.reused)


def runs_of(store: Store, stored: Sequence[Stored], sought: Sought) -> Found:
    """Return the runs to tell of; ``stored`` are all of the store.

    Raises UsageError ``unknown-run`` for a name that the store has not, ``not-a-run`` for a run
    without its folder; ConfigError ``reused-lost`` where a reused run is not in the store,
    ``run-unfinished`` and ``run-unplaced`` for one that nobody can judge. Whose a run is, the
    bundle is asked when it is read.
    """
    rows = {row.run_id: row for row in store.runs()}
    known = {run.run_id: run for run in stored}
    runs = [*_chosen(store, known, sought)]
    runs += _reused(runs, known)
    runs += [*_filling(runs, stored, sought)]
    lent = {run.run_id for run in runs if _is_lent(run, runs, sought)}
    read = [replace(_read(store, rows[r.run_id]), reused=r.run_id in lent) for r in runs]
    found = Found(
        runs=tuple(read),
        used=gathering.standing(read, sought.entries, sought.wants),
        folders={run.run_id: Path(rows[run.run_id].folder) for run in runs},
    )
    _check(fault for run in found.counting for fault in _faults(run))
    return found


def _check(faults: Iterable[Finding]) -> None:
    from infx.domain.errors import ConfigError

    if found := list(faults):
        raise ConfigError(found)


def _read(store: Store, row: RunRow) -> Swept:
    from infx.store import read_run

    return Swept(
        run_id=row.run_id,
        plan=read_run(Path(row.folder))[1],
        statuses={point.key: point.status for point in store.points(row.run_id)},
        records=tuple(store.records(row.run_id)),
    )


def _chosen(store: Store, known: dict[str, Stored], sought: Sought) -> Iterator[Stored]:
    """Yield the runs that were asked for, else those of the pull request: the one that a comment
    reuses first, then the newest."""
    from infx.store import find_run

    mine = sorted((run for run in known.values() if _is_of(run, sought)), key=_age)
    asked = [find_run(store, name).run_id for name in sought.names]
    names = asked or [*_commanded(known, sought), *(run.run_id for run in mine)]
    yield from (known[name] for name in dict.fromkeys(names))


def _commanded(known: dict[str, Stored], sought: Sought) -> list[str]:
    """Return the run that a comment reuses: the one that it names, else, as CI takes it, the newest
    that has measured everything."""
    from infx.ci.stored import followed, standing, whole

    if sought.command is None:
        return []
    if sought.command:
        return [sought.command] if sought.command in known else []
    made = (run for run in known.values() if run.origin)  # a person's run is named, or not taken
    fit = standing(made, sought.repository, valid=True)
    ids = {point.point_id for point in sought.wants}
    newest = whole([followed(run, fit) for run in fit], ids) if ids else None
    return [newest.run_id] if newest else []


def _age(run: Stored) -> float:
    return -run.created_s


def _is_of(run: Stored, sought: Sought) -> bool:
    ours = (sought.repository, sought.pull_request)
    return run.origin is not None and (run.origin.repository, run.origin.pull_request) == ours


def _reused(runs: Sequence[Stored], known: dict[str, Stored]) -> list[Stored]:
    """Return more runs: those that the plans of these take points from."""
    have = {run.run_id for run in runs}
    names = [name for name in _sources(runs) if name not in have]
    _check(_lost(name) for name in names if name not in known)
    return [known[name] for name in names]


def _sources(runs: Sequence[Stored]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.reused.values()))


def _filling(runs: Sequence[Stored], stored: Sequence[Stored], sought: Sought) -> Iterator[Stored]:
    """Yield more runs with points that none of these has a result of: what CI found measured."""
    from infx.ci.stored import covering, standing

    have = {run.run_id for run in runs}
    tried = {key for run in runs for key, status in run.states.items() if status.terminal}
    others = [run for run in stored if run.origin and run.run_id not in have]
    lacking = {point.point_id for point in sought.wants} - tried
    if lacking and not sought.names:
        yield from covering(standing(others, sought.repository, valid=True), lacking)[0]


def _is_lent(run: Stored, runs: Sequence[Stored], sought: Sought) -> bool:
    """Return True for a run whose points stand here for others: it is of another change, or the
    first run took points from it."""
    if run is runs[0]:
        return run.origin is not None and not _is_of(run, sought)
    asked = run.run_id in sought.names and run.origin is None
    return run.run_id in _sources(runs) or not (asked or _is_of(run, sought))


def _faults(run: Swept) -> Iterator[Finding]:
    from infx.domain.findings import Finding

    if left := run.under_way:
        shown = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        sentence = f"run {run.run_id} has no end yet of {len(left)} points: {shown}"
        hint = f"infx ci wait {run.run_id}"
        yield Finding("run-unfinished", "error", sentence, None, hint)
    made = revisions(run)
    if len(made) == 1 and not made[0].endswith("+"):
        return
    said = " and ".join(made) if made else "no commit"
    sentence = f"run {run.run_id} was measured at {said}, which is no one commit"
    hint = "commit the change, then sweep what infx ci plan plans"
    yield Finding("run-unplaced", "error", sentence, None, hint)


def _lost(name: str) -> Finding:
    from infx.domain.findings import Finding

    sentence = f"run {name} is reused and is not in the store"
    return Finding("reused-lost", "error", sentence, None, f"infx store pull PLACE {name}")
