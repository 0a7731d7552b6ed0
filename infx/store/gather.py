"""From the files of a run into the store: what the jobs wrote is the truth, the store an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding
from infx.domain.plan import Job, Plan
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import decode
from infx.domain.status import PENDING, Status
from infx.plan.saved import read_plan
from infx.store.judged import standing
from infx.store.kept import best
from infx.store.layout import PLAN, RESULT, RUN, SPEC, job_dir, point_files, unique_name
from infx.store.rows import PointKey, PointRow, RunRow
from infx.store.store import Store

__all__ = ["Gathered", "Judge", "gather", "read_attempt", "read_point", "read_run"]

Judge = Callable[[PointRecord, Path], PointRecord]
"""Turns a ``measured`` record and its run's folder into the judged record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a run's folder holds: the records that stand now, and files that cannot be read."""

    run: RunRow
    plan: Plan
    records: tuple[PointRecord, ...]
    findings: tuple[Finding, ...] = ()


def read_run(folder: Path) -> tuple[RunRow, Plan]:
    """Return what a run's folder says of itself. Raises UsageError ``not-a-run``."""
    if not (folder / RUN).is_file() or not (folder / PLAN).is_file():
        hint = "name a run, as infx status lists them, or its folder in results/runs"
        raise UsageError("not-a-run", f"{folder} holds no {RUN} and {PLAN}", hint=hint)
    row = decode((folder / RUN).read_bytes(), RunRow, source=str(folder / RUN))
    return replace(row, folder=str(folder)), read_plan(folder / PLAN)


def gather(store: Store, folder: Path, judge: Judge) -> Gathered:
    """Read every point.json under a run's folder into ``store``, judged anew, and return the run.

    A verdict stands as it is where its evidence was left behind (see `judged`).
    Of a point's attempts ok stands before failed, then the newest; a record that only the store
    has (a lost job left no file) competes with them. An attempt that only the folder has has ended,
    but for a job's newest that a scheduler was given and that left no result: it may go on.
    Nothing in the folder is changed.
    """
    run, plan = read_run(folder)
    store.create_run(run, plan)
    candidates: dict[PointKey, list[PointRecord]] = defaultdict(list)
    findings: list[Finding] = []
    attempts: list[Attempt] = []
    for job in plan.jobs:
        found = sorted(_attempt_dirs(folder, job))
        attempts += _attempts(run.run_id, job, found)
        for _, attempt in found:
            records, faults = read_attempt(attempt, folder, judge)
            findings += faults
            for record in records:
                candidates[_key(record)].append(record)
    # The store is asked and told once, not once an attempt: each time waits for the disk.
    store.add_attempts(attempts)
    if any(_only_stored(row, candidates[row.key]) for row in store.points(run.run_id)):
        for record in store.records(run.run_id):
            _add_missing(candidates[_key(record)], record)
    standing = {key: best(records) for key, records in candidates.items() if records}
    store.replace(list(standing.values()))
    return Gathered(run=run, plan=plan, records=_in_order(plan, standing), findings=tuple(findings))


def read_attempt(
    attempt_dir: Path, run_dir: Path, judge: Judge
) -> tuple[list[PointRecord], list[Finding]]:
    """Return the judged records of one attempt, and a finding for each file that is none."""
    records: list[PointRecord] = []
    findings: list[Finding] = []
    for path in point_files(attempt_dir):
        try:
            records.append(read_point(path, run_dir, judge))
        except ConfigError as error:
            findings += error.findings
    return records, findings


def read_point(path: Path, run_dir: Path, judge: Judge) -> PointRecord:
    """Return the judged record of a point.json: as it was judged before, where its evidence was
    left behind. Raises ConfigError."""
    record = decode(path.read_bytes(), PointRecord, source=str(path))
    return standing(path, run_dir) or _judged(record, run_dir, judge)


def _judged(record: PointRecord, run_dir: Path, judge: Judge) -> PointRecord:
    try:
        return judge(record, run_dir)
    except Exception as error:  # noqa: BLE001 - one odd export may not end a sweep of hundreds
        fault = f"judging failed: {type(error).__name__}: {error}"
        return replace(record, status=Status("failed", "internal", fault))


def _key(record: PointRecord) -> PointKey:
    return record.attempt.job_id, record.point.point_id


def _in_order(plan: Plan, standing: Mapping[PointKey, PointRecord]) -> tuple[PointRecord, ...]:
    keys = ((job.job_id, point.point_id) for job in plan.jobs for point in job.points)
    return tuple(standing[key] for key in keys if key in standing)


def _only_stored(row: PointRow, candidates: Sequence[PointRecord]) -> bool:
    """Return True when the store has a record of the point from an attempt that left no file."""
    unseen = all(record.attempt.number != row.attempt for record in candidates)
    return unseen and row.status != PENDING


def _add_missing(candidates: list[PointRecord], stored: PointRecord) -> None:
    if all(record.attempt.number != stored.attempt.number for record in candidates):
        candidates.append(stored)


def _attempt_dirs(folder: Path, job: Job) -> Iterator[tuple[int, Path]]:
    for path in job_dir(folder, job).glob("a*"):
        if path.is_dir() and path.name[1:].isdecimal():
            yield int(path.name[1:]), path


def _attempts(run_id: str, job: Job, found: Sequence[tuple[int, Path]]) -> list[Attempt]:
    attempts = [_attempt(run_id, job, number, path) for number, path in found]
    if found and not (found[-1][1] / RESULT).exists():
        attempts[-1] = _perhaps_open(attempts[-1], found[-1][1])
    return attempts


def _attempt(run_id: str, job: Job, number: int, path: Path) -> Attempt:
    changed_s = path.stat().st_mtime
    return Attempt(
        run_id=run_id,
        job_id=job.job_id,
        number=number,
        unique_name=unique_name(run_id, job.job_id, number),
        repeat=job.repeat,
        started_s=changed_s,
        ended_s=changed_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """What an attempt's job.json tells a scheduler's driver; see `Attempt`."""

    batch: str = ""
    task: int | None = None


def _perhaps_open(attempt: Attempt, path: Path) -> Attempt:
    try:
        told = decode((path / SPEC).read_bytes(), _Submitted)
    except (OSError, ConfigError):  # it was never whole: nothing was submitted
        return attempt
    return (
        replace(attempt, batch=told.batch, task=told.task, ended_s=0.0) if told.batch else attempt
    )
