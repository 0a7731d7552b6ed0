"""What became of an attempt that ended: its records, and one for each point that left none."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from infx.domain.codes import CODES
from infx.domain.findings import Finding
from infx.domain.outcome import Ending, ending_of
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.launch.events import FILE, Tail
from infx.launch.executor import JobState, Order
from infx.store import Judge, read_attempt

__all__ = ["collect", "ending_in"]


def collect(
    order: Order, state: JobState, run_dir: Path, judge: Judge, *, cancelled: bool
) -> list[PointRecord]:
    """Return the records of an ended attempt.

    A point without one was cancelled when we asked for that, else its job is lost and says why. A
    void attempt's missing points get none: it is as if it had not been.
    """
    records, faults = read_attempt(order.folder, run_dir, judge)
    records = [_explained(record, order, state, cancelled) for record in records]
    if state.void and not cancelled:
        return records
    found = {record.point.point_id for record in records}
    missing = [point for point in order.job.points if point.point_id not in found]
    if not missing:
        return records
    status = _cancelled() if cancelled else _lost(order, state, [str(fault) for fault in faults])
    return records + [_without_record(point, order, status) for point in missing]


def ending_in(order: Order, state: JobState, records: Collection[PointRecord]) -> Ending:
    """Return how the attempt with these records ended: its own points count, no others."""
    node = state.node or next((r.attempt.node for r in records if r.attempt.node), "")
    if state.void:
        return Ending(outcome="void", sentence=state.sentence, node=node)
    wanted = {point.point_id for point in order.job.points}
    return ending_of([r.status for r in records if r.point.point_id in wanted], node)


def _explained(record: PointRecord, order: Order, state: JobState, cancelled: bool) -> PointRecord:
    """A job that was told to stop calls its points cancelled; the executor may know the reason."""
    if state.remark:
        finding = Finding("suspect-end", "warning", state.remark)
        record = replace(record, findings=(*record.findings, finding))
    if cancelled or not state.code:
        return record
    killed = state.code == "out-of-memory" and record.status.code in (
        "server-died",
        "server-exited",
    )
    if record.status.state == "cancelled" or killed:
        return replace(record, status=_told(order, state))
    return record


def _without_record(point: Point, order: Order, status: Status) -> PointRecord:
    attempt = replace(order.attempt, ended_s=time.time())
    return PointRecord(point=point, status=status, attempt=attempt)


def _cancelled() -> Status:
    return Status("cancelled", sentence="stopped before it was measured")


def _told(order: Order, state: JobState) -> Status:
    """Return the status that the executor's code stands for."""
    if state.code == "cancelled-outside":
        return Status("cancelled", state.code, state.sentence)
    late = f"the job passed its limit of {order.job.time_limit_s} s"
    return Status("failed", state.code, state.sentence or (late if _late(state) else ""))


def _late(state: JobState) -> bool:
    return state.code == "time-limit"


def _lost(order: Order, state: JobState, faults: list[str]) -> Status:
    if state.code not in ("", "job-lost"):
        return _told(order, state)
    if last := _last_word(order.folder):
        return last
    code = "unknown" if state.exit_code is None else state.exit_code
    ended = state.sentence or f"the job ended (exit code {code})"
    evidence = next(iter(faults), "") or _last_line(order.folder / "infx.log") or "no log"
    return Status("failed", "job-lost", f"{ended}: {evidence}")


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
