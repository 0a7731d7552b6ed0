"""From the files of a run into the store: what the jobs wrote is the truth, the store an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding
from infx.domain.plan import Job, Plan
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import decode
from infx.domain.status import Status
from infx.plan import read_plan
from infx.store.kept import best
from infx.store.layout import PLAN, RUN, job_dir, point_files, unique_name
from infx.store.rows import RunRow
from infx.store.store import Store

__all__ = ["Gathered", "Judge", "gather", "read_attempt", "read_run"]

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
        raise UsageError("not-a-run", f"{folder} holds no {RUN} and {PLAN}")
    row = decode((folder / RUN).read_bytes(), RunRow, source=str(folder / RUN))
    return replace(row, folder=str(folder)), read_plan(folder / PLAN)


def gather(store: Store, folder: Path, judge: Judge) -> Gathered:
    """Read every point.json under a run's folder into ``store``, judged anew, and return the run.

    Of a point's attempts ok stands before failed, then the newest; a record that only the store
    has (a lost job left no file) competes with them. Nothing in the folder is changed.
    """
    run, plan = read_run(folder)
    store.create_run(run, plan)
    candidates: dict[str, list[PointRecord]] = defaultdict(list)
    findings: list[Finding] = []
    for job in plan.jobs:
        for number, attempt in _attempt_dirs(folder, job):
            store.add_attempts([_attempt(run.run_id, job, number, attempt)])
            records, faults = read_attempt(attempt, folder, judge)
            findings += faults
            for record in records:
                candidates[record.point.point_id].append(record)
    for record in store.records(run.run_id):
        _add_missing(candidates[record.point.point_id], record)
    store.replace([best(records) for records in candidates.values()])
    standing = tuple(store.records(run.run_id))
    return Gathered(run=run, plan=plan, records=standing, findings=tuple(findings))


def read_attempt(
    attempt_dir: Path, run_dir: Path, judge: Judge
) -> tuple[list[PointRecord], list[Finding]]:
    """Return the judged records of one attempt, and a finding for each file that is none."""
    records: list[PointRecord] = []
    findings: list[Finding] = []
    for path in point_files(attempt_dir):
        try:
            record = decode(path.read_bytes(), PointRecord, source=str(path))
        except ConfigError as error:
            findings += error.findings
        else:
            records.append(_judged(record, run_dir, judge))
    return records, findings


def _judged(record: PointRecord, run_dir: Path, judge: Judge) -> PointRecord:
    try:
        return judge(record, run_dir)
    except Exception as error:  # noqa: BLE001 - one odd export may not end a sweep of hundreds
        fault = f"judging failed: {type(error).__name__}: {error}"
        return replace(record, status=Status("failed", "internal", fault))


def _add_missing(candidates: list[PointRecord], stored: PointRecord) -> None:
    if all(record.attempt.number != stored.attempt.number for record in candidates):
        candidates.append(stored)


def _attempt_dirs(folder: Path, job: Job) -> Iterator[tuple[int, Path]]:
    for path in job_dir(folder, job).glob("a*"):
        if path.is_dir() and path.name[1:].isdecimal():
            yield int(path.name[1:]), path


def _attempt(run_id: str, job: Job, number: int, path: Path) -> Attempt:
    changed_s = path.stat().st_mtime
    return Attempt(
        run_id=run_id,
        job_id=job.job_id,
        number=number,
        unique_name=unique_name(run_id, job.job_id, number),
        started_s=changed_s,
        ended_s=changed_s,
    )
