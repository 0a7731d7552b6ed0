"""Where an attempt is, from what Slurm says and from the job's own record: pure.

An end is believed when both tell it. One alone is suspect, and waited for: a record may come late
over a network file system, and a scheduler that crashed may have forgotten a job that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from infx.job.result import Result
from infx.launch.executor import JobState
from infx.launch.slurm.queue import Row
from infx.launch.slurm.reasons import pending
from infx.launch.slurm.states import DROPPED, UNTOLD, ending, phase

__all__ = ["Sight", "alive", "state_of"]

NO_RESULT = "its record result.json is not there"

OF_ONE_TURN = frozenset({"", "out-of-memory", "time-limit"})
"""Ends of a job that say nothing of the attempts whose turn had not come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look at an attempt: Slurm's row (None: it has none), the job's own record, and the
    seconds since the two were first seen to differ.

    ``claimed`` tells whether a job of that name ever started, and ``doubled`` that it is not the
    one of the row: a drive that was lost submitted the attempt before. ``quiet`` tells that its
    files have not grown lately. One that is ``in_turn`` shares Slurm's job with other attempts,
    before it or after it, whose files count for ``quiet`` too: it ends with that job, whenever its
    own turn was over.
    """

    row: Row | None
    result: Result | None
    differs_s: float = 0.0
    claimed: bool = False
    doubled: bool = False
    quiet: bool = True
    in_turn: bool = False

    @property
    def never_began(self) -> bool:
        """True when its job ended, or is gone, before its turn came."""
        return self.in_turn and not self.claimed and self.result is None

    @property
    def gone(self) -> bool:
        """True when Slurm has no row of it, or does not say while the job has its record."""
        state = self.row.state if self.row else DROPPED
        return state == DROPPED or (state == UNTOLD and self.result is not None)

    @property
    def one_sided(self) -> bool:
        """True when only one of the two tells an end."""
        ended = self.row is not None and phase(self.row.state) == "ended"
        return self.gone or ended != (self.result is not None)


def alive(row: Row | None) -> bool:
    """Return True when Slurm says that the attempt waits or runs."""
    return row is not None and phase(row.state) in ("queued", "running")


def state_of(sight: Sight, patience_s: float) -> JobState:
    """Return where the attempt is; one-sided ends are suspect for ``patience_s``.

    A void end is only proposed: the caller makes sure that the job cannot start any more.
    """
    row = sight.row
    if row is None or sight.gone:
        return _forgotten(sight, patience_s)
    standing = phase(row.state)
    if standing == "ended":
        return _ended(sight, row, patience_s)
    if standing == "queued":
        told = pending(row.reason)
        return JobState(
            phase="queued", code=told.code, sentence=told.sentence, scheduler_id=row.shown_id
        )
    if standing == "running" and sight.never_began:
        sentence = "other attempts have their turn on its allocation"
        return JobState(phase="queued", sentence=sentence, scheduler_id=row.shown_id)
    late = sight.differs_s >= patience_s and not sight.in_turn
    if standing == "running" and sight.result and late:
        sentence = f"its own record says that it ended; Slurm says {row.state} still"
        return JobState(phase="suspect", sentence=sentence, scheduler_id=row.shown_id)
    node = row.nodes if standing == "running" else ""
    return JobState(phase=standing, scheduler_id=row.shown_id, node=node)


def _ended(sight: Sight, row: Row, patience_s: float) -> JobState:
    if sight.doubled and not sight.result and not sight.quiet:
        sentence = "another job has the attempt and goes on: a lost drive submitted it before"
        return JobState(phase="suspect", sentence=sentence, scheduler_id=row.shown_id)
    told = ending(row.state, row.reason, row.exit_code, row.derived, by=row.cancelled_by)
    no_turn = sight.never_began and told.code in OF_ONE_TURN
    may_come = sight.claimed or not told.code or no_turn  # a claim may not be seen yet, too
    if not sight.result and may_come and sight.differs_s < patience_s:
        sentence = f"Slurm says {row.state}; {NO_RESULT} yet"
        return JobState(phase="suspect", sentence=sentence, scheduler_id=row.shown_id)
    if no_turn:
        sentence = f"its job ended ({row.state}) before its turn"
        return JobState(phase="ended", void=True, sentence=sentence, node=row.nodes)
    code, sentence = told.code, told.sentence
    one_sided = f"Slurm says {row.state}, but {NO_RESULT}"
    if not sight.result and not code:
        code, sentence = "job-lost", one_sided
    return JobState(
        phase="ended",
        exit_code=row.exit_code[0] if row.exit_code else None,
        code=code,
        sentence=sentence,
        remark="" if sight.result else one_sided,
        scheduler_id=row.shown_id,
        node=row.nodes,
    )


def _forgotten(sight: Sight, patience_s: float) -> JobState:
    missing = "Slurm has no job of its name"
    if sight.result:
        if sight.differs_s < patience_s:
            return JobState(phase="suspect", sentence=f"{missing}; its own record says it ended")
        remark = f"{missing} any more: only the job's own record says how it ended"
        return JobState(phase="ended", remark=remark, node=sight.result.node)
    if sight.differs_s < patience_s or ((sight.claimed or sight.in_turn) and not sight.quiet):
        return JobState(phase="suspect", sentence=f"{missing}, and {NO_RESULT}")
    if not sight.claimed and sight.row and sight.row.state == DROPPED:
        sentence = "cancelled before it started: the other tasks of its array are in the queue"
        return JobState(phase="ended", code="cancelled-outside", sentence=sentence)
    if not sight.claimed:
        return JobState(phase="ended", void=True, sentence=f"{missing}, and it never started")
    return JobState(phase="ended", code="job-lost", sentence=f"{missing}, and {NO_RESULT}")
