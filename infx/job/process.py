"""A program that the job runs: in a session of its own, its output in a file, never an orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from infx.domain.errors import InfraError

__all__ = ["Program", "exit_text"]


class Program:
    """A running command, under `infx.job.guard`. Start it from the main thread: the kernel ties
    a child's life to the thread that made it."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], log: Path, folder: Path
    ) -> None:
        """Start ``argv`` in ``folder`` with exactly ``env``; output is added to ``log``.

        Raises InfraError (``launch-failed``) when no process can be made.
        """
        command = [sys.executable, "-P", "-m", "infx.job.guard", str(os.getpid()), *argv]
        try:
            with log.open("ab") as output:
                self._guard = subprocess.Popen(
                    command,
                    env=dict(env),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as error:
            raise InfraError("launch-failed", f"cannot start {argv[0]}: {error}") from error

    @property
    def pid(self) -> int:
        """The process id of the guard, which leads the session."""
        return self._guard.pid

    def exit_code(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._guard.poll()

    def processes(self) -> list[psutil.Process]:
        """Return every live process of the command (the guard is none of them)."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def listens_on(self, port: int) -> bool:
        """Return True when one of its processes has a TCP socket listening on ``port``."""
        return any(port in _ports(process) for process in self.processes())

    def stop(self, first: signal.Signals, patience_s: float) -> bool:
        """Send ``first``, and KILL to everything after ``patience_s``. Return True if it obeyed."""
        self.send(first)
        if self._ended_within(patience_s):
            return True
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if not self._ended_within(KILL_S):
            self._guard.kill()
            self._guard.wait()
        return False

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command, if it still runs."""
        if self._guard.poll() is None:
            self._guard.send_signal(number)

    def _ended_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._guard.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        return self._guard.poll() is not None


KILL_S = 15.0
"""The guard itself takes up to 10 s to see the last process of a killed tree go."""


def exit_text(code: int | None) -> str:
    """Return an exit code in words."""
    if code is None:
        return "still running"
    if code <= 128:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"exit code {code}"


def _ports(process: psutil.Process) -> set[int]:
    with suppress(psutil.Error):
        sockets = process.net_connections(kind="tcp")
        return {s.laddr.port for s in sockets if s.status == psutil.CONN_LISTEN}
    return set()
