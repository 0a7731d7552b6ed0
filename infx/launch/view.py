"""A run seen from outside: what its store and its jobs' events say. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from infx.domain.plan import Plan
from infx.domain.record import Attempt
from infx.launch.board import Board
from infx.launch.events import FILE, Tail
from infx.store import RunRow, Store, attempt_dir, holder, kept

__all__ = ["RunStanding", "snapshot", "standing"]

RunStanding = Literal["running", "detached", "interrupted", "cancelled", "partial", "finished"]


def standing(run: RunRow, statuses_kept: bool, attempts: Sequence[Attempt] = ()) -> RunStanding:
    """Return how a run stands, given its open attempts.

    One that says running while nobody drives it was interrupted; its jobs go on (``detached``)
    when a scheduler has them.
    """
    if holder(Path(run.folder)):
        return "running"
    if statuses_kept:
        return "finished"
    if any(attempt.batch for attempt in attempts):
        return "detached"
    if run.state == "running":
        return "interrupted"
    return "cancelled" if run.state == "cancelled" else "partial"


def snapshot(store: Store, run: RunRow, plan: Plan) -> Board:
    """Return the board of a run as it is now, as far as files here tell."""
    statuses = {row.key: row.status for row in store.points(run.run_id)}
    board = Board.of(run.run_id, plan, statuses)
    jobs = {job.job_id: job for job in plan.jobs}
    driven = bool(holder(Path(run.folder)))
    for attempt in store.attempts(run.run_id, open_only=True):
        if not driven and not attempt.batch:
            continue  # it ended with its driver
        job = jobs[attempt.job_id]
        left = tuple(p for p in job.points if not kept(statuses[job.job_id, p.point_id]))
        board.lines[job.job_id].job = replace(job, points=left or job.points)
        board.launched(job.job_id, attempt.number, attempt.started_s)
        for event in Tail(attempt_dir(Path(run.folder), job, attempt.number) / FILE).read():
            board.event(job.job_id, event)
    return board
