"""Jobs on this machine, one after another, each a process that dies with infx."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from infx.config.sites import TimeLimits
from infx.domain.errors import InfraError
from infx.domain.plan import Job
from infx.job.guard import die_with
from infx.job.spec import JobSpec, Site
from infx.launch.executor import JobState, Order
from infx.launch.policy import Policy
from infx.store.layout import SPEC

__all__ = ["LocalExecutor"]

PROGRAM = (sys.executable, "-P", "-m", "infx.job")

STOP_S = 60.0
"""A job that was asked to stop ends its client and its server first; after this it is killed."""

OVERTIME_S = 30.0
"""A job watches its own limit; one that is this late does not."""

ALIVE = "alive.lock"


@dataclass(slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    limit: float
    kill: float = float("inf")
    reason: str = ""


class LocalExecutor:
    """Runs one job at a time as ``python -m infx.job job.json`` in a session of its own.

    The job holds a lock on ``alive.lock`` in its folder, so that another infx sees whether it is
    still there; it gets TERM when this process dies, however it dies.
    """

    tick_s = 0.25
    policy = Policy(retries=0, voids=None)  # the same machine would fail it again
    durable = False

    def __init__(
        self,
        name: str = "local",
        limits: TimeLimits = TimeLimits(),  # noqa: B008
        program: Sequence[str] = PROGRAM,
    ) -> None:
        """``program`` is given the path of job.json as its last argument."""
        self.name, self._limits = name, limits
        self._program = tuple(program)
        self._children: dict[str, _Child] = {}

    def check(self, jobs: Sequence[Job]) -> None:
        """Nothing is known beforehand of this machine."""

    def scripts(self, orders: Sequence[Order]) -> list[str]:
        """Return nothing: a local job is a process."""
        return []

    def arrange(self, orders: Sequence[Order], held: Collection[Order]) -> list[Order]:
        """Return one order, or none while another is held."""
        return list(orders[:1]) if not held else []

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return it with the cluster's limits."""
        limits = self._limits
        return replace(spec, site=Site(start_limit_s=limits.start, point_limit_s=limits.point))

    def submit(self, orders: Sequence[Order]) -> Mapping[str, str]:
        """Start the attempts; the id is the process id."""
        return {order.name: self._start(order) for order in orders}

    def poll(self, orders: Sequence[Order]) -> Mapping[str, JobState]:
        """Return where each is; ends those that ignore their limit or a request to stop."""
        return {order.name: self._state(order) for order in orders}

    def cancel(self, orders: Sequence[Order], *, at_once: bool = False) -> None:
        """TERM, and KILL if it takes too long or ``at_once``."""
        for order in orders:
            child = self._children.get(order.name)
            if child:
                _stop(child, at_once)
            elif at_once and order.attempt.scheduler_id and _alive(order.folder):
                _signal(int(order.attempt.scheduler_id), signal.SIGKILL)

    def notices(self) -> list[str]:
        """Return nothing: a local job tells its own events."""
        return []

    def close(self) -> None:
        """End what still runs and wait for it."""
        for child in self._children.values():
            _stop(child, at_once=False)
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(STOP_S)
            _stop(child, at_once=True)
            child.process.wait()

    def _start(self, order: Order) -> str:
        parent = os.getpid()
        lock = _lock(order.folder / ALIVE)
        try:
            with (order.folder / "infx.log").open("ab") as log:
                process = subprocess.Popen(
                    [*self._program, str(order.folder / SPEC)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(lock,),
                    preexec_fn=lambda: die_with(parent),  # safe: this process has one thread
                )
        except OSError as error:
            raise InfraError(
                "launch-failed", f"cannot start {self._program[0]}: {error}"
            ) from error
        finally:
            os.close(lock)
        limit = time.monotonic() + order.job.time_limit_s + OVERTIME_S
        self._children[order.name] = _Child(process, limit)
        return str(process.pid)

    def _state(self, order: Order) -> JobState:
        child = self._children.get(order.name)
        if child is None:
            if _alive(order.folder):
                return JobState(phase="running")
            return JobState(phase="ended", void=True, sentence="its driver was killed")
        code = child.process.poll()
        if code is not None:
            return JobState(phase="ended", exit_code=code, code=child.reason)
        _hurry(child)
        return JobState(phase="running")


def _hurry(child: _Child) -> None:
    now = time.monotonic()
    if now > child.limit and not child.reason:
        child.reason = "time-limit"
        _stop(child, at_once=False)
    if now > child.kill:
        _stop(child, at_once=True)


def _stop(child: _Child, at_once: bool) -> None:
    if child.process.poll() is not None:
        return
    if at_once:
        _signal(child.process.pid, signal.SIGKILL)
    elif child.kill == float("inf"):
        child.kill = time.monotonic() + STOP_S
        child.process.send_signal(signal.SIGTERM)


def _signal(pid: int, number: signal.Signals) -> None:
    """Send to the job's whole group: it leads the session that it was started in."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def _lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _alive(folder: Path) -> bool:
    """Return True while the process that was given the folder's lock, or a child, holds it."""
    try:
        handle = os.open(folder / ALIVE, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
