"""TERM, Ctrl-C and the job's own time limit, as exceptions that unwind through every cleanup."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from infx.domain.errors import InfxError
from infx.domain.status import CANCELLED, Status

__all__ = ["Stopped", "deaf", "settled", "stop_on_signals", "uninterrupted"]

SETTLE_S = 2.0
"""Slurm sends TERM to every process of a job, step by step: a server may be dead before we are told
that it is not its fault. Two steps of a node heard it within 18 ms of each other, either first."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


class Stopped(BaseException):
    """The job must end now; ``status`` is what becomes of the points that are left."""

    def __init__(self, status: Status, exit_code: int) -> None:
        super().__init__(str(status))
        self.status, self.exit_code = status, exit_code


def stop_on_signals(time_limit_s: float) -> None:
    """Raise Stopped in the main thread on TERM, on INT, and after ``time_limit_s``.

    Only the first of them: what follows would interrupt the cleanup that it started.
    """
    late = Status("failed", "time-limit", f"the job passed its limit of {time_limit_s:g} s")
    told = Status(CANCELLED.state, sentence="stopped before it was measured")
    reasons = {
        signal.SIGTERM: Stopped(told, 143),
        signal.SIGINT: Stopped(told, 130),
        signal.SIGALRM: Stopped(late, 0),
    }

    def stop(number: int, _frame: FrameType | None) -> None:
        deaf()
        raise reasons[signal.Signals(number)]

    for reason in reasons:
        signal.signal(reason, stop)
    signal.setitimer(signal.ITIMER_REAL, time_limit_s)


def deaf() -> None:
    """Ignore the three signals from now on."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def settled() -> Iterator[None]:
    """Let an error of what stands inside count only if no request to stop follows at once: what
    was killed with the job has not failed."""
    try:
        yield
    except (InfxError, ConnectionError, TimeoutError):
        time.sleep(SETTLE_S)
        raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold the three signals back: what stands inside happens as a whole or not at all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
