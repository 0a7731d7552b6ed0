"""Where an attempt is, from what Slurm says and what its outputs hold: pure.

srt has no record of infx's own job, so an end is believed when Slurm tells it and the outputs are
there: a shared disk may show them late, and a controller that crashed forgets jobs that run.
"""

from __future__ import annotations

from dataclasses import dataclass

from infx.launch.executor import JobState
from infx.launch.slurm.queue import Row
from infx.launch.slurm.reasons import pending
from infx.launch.slurm.states import DROPPED, UNTOLD, canonical, ending, phase

__all__ = ["Left", "Sight", "final", "is_gone", "state_of"]

NO_OUTPUTS = "its outputs folder is not there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look at an attempt: Slurm's row (None: it has none), whether outputs of its job are
    there, the seconds since Slurm and they were first seen to differ, and whether the outputs have
    not grown lately."""

    row: Row | None
    outputs: bool
    differs_s: float = 0.0
    quiet: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an ended job left: how many of its ``points`` have an export (``measured``), whether the
    client was started, and the first useful line of its logs."""

    points: int
    measured: int
    client: bool
    line: str


def is_gone(row: Row | None) -> bool:
    """Return True when Slurm has no row of the attempt, or does not say."""
    return row is None or row.state in (DROPPED, UNTOLD)


def state_of(sight: Sight, patience_s: float) -> JobState:
    """Return where the attempt is. ``ended`` is only proposed: see `final`; a void end too, until
    the caller makes sure that the job cannot start any more."""
    row = sight.row
    if row is None or row.state == DROPPED or (row.state == UNTOLD and sight.outputs):
        return _forgotten(sight, patience_s)
    standing = phase(row.state)
    if standing == "queued":
        told = pending(row.reason)
        return JobState(
            phase="queued", code=told.code, sentence=told.sentence, scheduler_id=row.shown_id
        )
    if standing != "ended":
        return JobState(phase=standing, scheduler_id=row.shown_id, node=row.nodes)
    told_end = ending(row.state, row.reason, row.exit_code, row.derived, by=row.cancelled_by)
    if not sight.outputs and not told_end.code and sight.differs_s < patience_s:
        sentence = f"Slurm says {row.state}; {NO_OUTPUTS} yet"
        return JobState(phase="suspect", sentence=sentence, scheduler_id=row.shown_id)
    return JobState(
        phase="ended",
        exit_code=_exit_code(row),
        code=told_end.code,
        sentence=told_end.sentence,
        scheduler_id=row.shown_id,
        node=row.nodes,
    )


def final(state: JobState, left: Left | None) -> tuple[str, str, str]:
    """Return code, sentence and remark of an ended attempt whose outputs hold ``left`` (None: they
    are not there). A code is of the points without an export; "" when all have one."""
    if left is None:
        return state.code or "job-lost", f"{state.sentence}, but {NO_OUTPUTS}", ""
    if left.measured == left.points:
        failed = state.code or state.exit_code
        return "", "", state.remark or (f"srt's job: {state.sentence}" if failed else "")
    if state.code or state.remark:
        return state.code or "job-lost", _with(state.sentence, left.line), ""
    if state.exit_code == 0:
        text = f"srt says that the job succeeded, but aiperf left no export of {_missing(left)}"
        return "srt-no-export", _with(text, left.line), ""
    if not left.client:
        text = "srt's benchmark was not started: no server got ready"
        return "server-exited", _with(text, left.line), ""
    return "client-failed", _with(f"aiperf left no export of {_missing(left)}", left.line), ""


def _exit_code(row: Row) -> int | None:
    """squeue tells none; of a job that COMPLETED it is 0."""
    if row.exit_code:
        return row.exit_code[0]
    return 0 if canonical(row.state) == "COMPLETED" else None


def _missing(left: Left) -> str:
    return f"{left.points - left.measured} of {left.points} points"


def _with(sentence: str, line: str) -> str:
    return f"{sentence}: {line}" if line else sentence


def _forgotten(sight: Sight, patience_s: float) -> JobState:
    missing = "Slurm has no job of its name"
    if sight.differs_s < patience_s or (sight.outputs and not sight.quiet):
        return JobState(phase="suspect", sentence=missing)
    if sight.outputs:
        gone = f"{missing} any more"
        return JobState(phase="ended", sentence=gone, remark=f"{gone}: only its outputs tell")
    return JobState(phase="ended", void=True, sentence=f"{missing}, and it never started")
