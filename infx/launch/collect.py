"""What became of an attempt that ended: its records, and one for each point that left none."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from infx.domain.codes import CODES
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.launch.events import FILE, Tail
from infx.launch.executor import JobState, Order
from infx.store import Judge, read_attempt

__all__ = ["collect"]


def collect(
    order: Order, state: JobState, run_dir: Path, judge: Judge, *, cancelled: bool
) -> list[PointRecord]:
    """Return the records of an ended attempt.

    A point without one was cancelled when we asked for that, else its job is lost and says why. An
    adopted attempt's missing points get none: whoever launched it died first, so they run again.
    """
    records, faults = read_attempt(order.folder, run_dir, judge)
    records = [_in_time(record, order, state) for record in records]
    if order.adopted:
        return records
    found = {record.point.point_id for record in records}
    missing = [point for point in order.job.points if point.point_id not in found]
    if not missing:
        return records
    status = _cancelled() if cancelled else _lost(order, state, [str(fault) for fault in faults])
    return records + [_without_record(point, order, status) for point in missing]


def _in_time(record: PointRecord, order: Order, state: JobState) -> PointRecord:
    """A job that its limit stopped calls its points cancelled; the limit is the reason."""
    if state.reason == "time-limit" and record.status.state == "cancelled":
        return replace(record, status=_too_late(order))
    return record


def _without_record(point: Point, order: Order, status: Status) -> PointRecord:
    attempt = replace(order.attempt, ended_s=time.time())
    return PointRecord(point=point, status=status, attempt=attempt)


def _cancelled() -> Status:
    return Status("cancelled", sentence="stopped before it was measured")


def _too_late(order: Order) -> Status:
    limit_s = order.job.time_limit_s
    return Status("failed", "time-limit", f"the job passed its limit of {limit_s} s")


def _lost(order: Order, state: JobState, faults: list[str]) -> Status:
    if state.reason == "time-limit":
        return _too_late(order)
    told = _last_word(order.folder)
    if told:
        return told
    code = "unknown" if state.exit_code is None else state.exit_code
    evidence = next(iter(faults), "") or _last_line(order.folder / "infx.log") or "no log"
    return Status("failed", "job-lost", f"the job ended (exit code {code}): {evidence}")


def _last_word(folder: Path) -> Status | None:
    """Return the status that the job itself ended with, when it named a code of ours."""
    for event in reversed(Tail(folder / FILE).read()):
        state, _, code = (event.status or "").partition(":")
        if event.event == "job-ended" and state == "failed" and code in CODES:
            return Status("failed", code, event.sentence or "")
    return None


def _last_line(path: Path) -> str:
    """Return the last line of a log that is not blank."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
