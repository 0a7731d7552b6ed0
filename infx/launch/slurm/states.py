"""What Slurm's job states mean: explicit sets, and what a terminal one says of an attempt.

An unknown state is never terminal. States and compact codes are those of Slurm 22.05 to 25.11
(job_state_codes); what a state and an exit code look like together was measured on 22.05.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from infx.launch.slurm.script import NO_FOLDER, NO_PYTHON

__all__ = [
    "COMPACT",
    "DROPPED",
    "QUEUED",
    "REQUEUED",
    "RUNNING",
    "TERMINAL",
    "UNTOLD",
    "Ending",
    "Phase",
    "canonical",
    "ending",
    "phase",
]

Phase = Literal["queued", "running", "ended", "unknown"]

# On their way back into the queue under the same id: not an end.
REQUEUED = frozenset(
    {
        "EXPEDITING",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
    }
)
QUEUED = REQUEUED | {"PENDING"}
# Holding nodes. COMPLETING still runs its epilog and may turn into a requeue.
RUNNING = frozenset(
    {
        "COMPLETING",
        "CONFIGURING",
        "POWER_UP_NODE",
        "RESIZING",
        "RUNNING",
        "SIGNALING",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
    }
)
TERMINAL = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
# Of our own: it is not in the queue, and accounting did not say what became of it.
UNTOLD = "UNTOLD"
# Of our own: other tasks of its array are in the queue, it is not. So it is when someone cancels a
# task that waits: neither squeue nor sacct keeps a row of it.
DROPPED = "DROPPED"
COMPACT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}

# slurmstepd ends a step that it could not set up (output file, working folder) with this signal.
_SETUP_SIGNAL = 53
# Slurm's own exit signal for a job that the kernel's out-of-memory killer hit.
_OOM_SIGNAL = 125


@dataclass(frozen=True, slots=True)
class Ending:
    """``code`` is one of infx's, "" when the end says nothing beyond the job's own record."""

    code: str
    sentence: str


def canonical(state: str) -> str:
    """Return the full name of a state as any Slurm command writes it (``CANCELLED by 0``, ``PD``).

    A state that infx does not know comes back in capitals.
    """
    words = state.split()
    word = words[0].rstrip("+").upper() if words else ""
    return COMPACT.get(word, word)


def phase(state: str) -> Phase:
    """Return where a job in ``state`` is; ``unknown`` changes nothing."""
    name = canonical(state)
    if name in TERMINAL:
        return "ended"
    if name in RUNNING:
        return "running"
    return "queued" if name in QUEUED else "unknown"


def ending(
    state: str,
    reason: str = "",
    exit_code: tuple[int, int] | None = None,
    derived: tuple[int, int] | None = None,
    *,
    by: str = "",
) -> Ending:
    """Return what a terminal state means; codes are (exit code, signal), None where not told.

    ``by`` is the user id that cancelled it; a state ``CANCELLED by 0`` tells it too.
    Raises ValueError for a state that is not terminal.

    squeue tells no exit code, so that a job over its memory, one killed by a signal and one that
    could not be launched look alike there (FAILED, JobLaunchFailure): ask sacct or scontrol too.
    """
    name = canonical(state)
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "COMPLETED":
        return _completed(derived)
    if name in ("CANCELLED", "REVOKED"):
        return _cancelled(name, by or state.partition(" by ")[2].strip(), reason)
    if name == "FAILED":
        return _failed(reason, exit_code)
    raise ValueError(f"{state!r} is not a terminal state of Slurm: {', '.join(sorted(TERMINAL))}")


_PLAIN = {
    "BOOT_FAIL": Ending("node-failed", "a node of the job did not boot"),
    "DEADLINE": Ending("time-limit", "the job could not end before its deadline"),
    "NODE_FAIL": Ending("node-failed", "a node of the job failed"),
    "OUT_OF_MEMORY": Ending("out-of-memory", "the job used more memory than it was given"),
    "PREEMPTED": Ending("preempted", "a job of higher priority took the nodes"),
    "TIMEOUT": Ending("time-limit", "the job reached its time limit"),
}


def _completed(derived: tuple[int, int] | None) -> Ending:
    if derived in (None, (0, 0)):
        return Ending("", "completed")
    return Ending("", f"completed, though a step of it ended with {_words(derived)}")


def _cancelled(name: str, by: str, reason: str) -> Ending:
    if reason == "DependencyNeverSatisfied" and not by:  # --kill-on-invalid-dep=yes
        sentence = f"the job that it depends on did not end as it must ({reason})"
        return Ending("never-scheduled", sentence)
    if name == "REVOKED":
        return Ending("cancelled-outside", "another cluster of the federation took the job")
    return Ending(
        "cancelled-outside", f"cancelled by user {by}" if by else "cancelled outside infx"
    )


def _failed(reason: str, exit_code: tuple[int, int] | None) -> Ending:
    if reason in _FAILURES:
        return _FAILURES[reason]
    if exit_code is None:
        return _FAILED_UNTOLD.get(reason, Ending("", "failed; its exit code is not known"))
    code, number = exit_code
    known = _SIGNALS.get(number) if number else _NOT_STARTED.get(code)
    return known or Ending("", f"failed with {_words(exit_code)}")


_SIGNALS = {
    _SETUP_SIGNAL: Ending(
        "launch-failed",
        "Slurm could not set the job up (0:53): its log's folder or working folder is missing"
        " or not writable on the node",
    ),
    _OOM_SIGNAL: _PLAIN["OUT_OF_MEMORY"],
    signal.SIGKILL: Ending(
        "out-of-memory", "killed by SIGKILL, most often for using more memory than it was given"
    ),
}
# Exit codes of the job script, where the job's own program was not started.
_NOT_STARTED = {
    NO_FOLDER: Ending(
        "launch-failed", "the node cannot read the run's folder: the nodes must share it"
    ),
    NO_PYTHON: Ending("launch-failed", "the node does not have the interpreter of the job"),
}
# FAILED with one of these reasons, whatever the exit code.
_FAILURES = {
    "BadConstraints": Ending("submit-refused", "Slurm refused the job when it was submitted"),
    "NodeDown": _PLAIN["NODE_FAIL"],
    "OutOfMemory": _PLAIN["OUT_OF_MEMORY"],
    "SystemFailure": Ending("launch-failed", "Slurm itself or its file system failed"),
    "TimeLimit": _PLAIN["TIMEOUT"],
}
_FAILED_UNTOLD = {
    "JobLaunchFailure": Ending(
        "launch-failed", "Slurm could not launch the job, or a signal ended it (JobLaunchFailure)"
    ),
    "LaunchFailed": Ending("launch-failed", "Slurm could not launch the job (LaunchFailed)"),
    "NonZeroExitCode": Ending("", "failed with an exit code other than 0"),
    "RaisedSignal": Ending("", "ended by a signal"),
}


def _words(exit_code: tuple[int, int] | None) -> str:
    code, number = exit_code or (0, 0)
    return f"signal {number}{_signal_name(number)}" if number else f"exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
