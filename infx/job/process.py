"""A program that the job runs: in a session of its own, its output in a file, never an orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

from infx.domain.errors import InfraError
from infx.job.signals import Stopped, uninterrupted

__all__ = ["MARK", "Program", "exit_text", "listener"]

MARK = "INFX_NONCE"
"""The variable that a marked program's processes are known by."""


class Program:
    """A running command, under `infx.job.guard`. Start it from the main thread: the kernel ties
    a child's life to the thread that made it.

    Where the command only asks another program to run something (srun its step daemon), what runs
    is no child of it: it belongs to the program all the same when it is marked with its nonce.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log: Path,
        folder: Path,
        nonce: str = "",
    ) -> None:
        """Start ``argv`` in ``folder`` with ``env`` and the mark of ``nonce``, if there is one;
        output is added to ``log``.

        Raises InfraError (``launch-failed``) when no process can be made.
        """
        self._mark = f"{MARK}={nonce}" if nonce else ""
        command = [sys.executable, "-P", "-m", "infx.job.guard", str(os.getpid()), *argv]
        environ = {**env, MARK: nonce} if nonce else dict(env)
        try:
            with log.open("ab") as output, uninterrupted():
                self._guard = _started(command, environ, output, folder)
        except OSError as error:
            raise InfraError("launch-failed", f"cannot start {argv[0]}: {error}") from error
        except Stopped:
            if hasattr(self, "_guard"):  # the signal was held back until it ran
                self.stop(signal.SIGTERM, KILL_S)
            raise

    @property
    def pid(self) -> int:
        """The process id of the guard, which leads the session."""
        return self._guard.pid

    def exit_code(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._guard.poll()

    def processes(self) -> list[psutil.Process]:
        """Return every live process of the command (the guard is none of them)."""
        return [*self._tree(), *self._apart()]

    def listens_on(self, port: int) -> bool:
        """Return True when one of its processes has a TCP socket listening on ``port``."""
        return listener(self.processes(), port) is not None

    def stop(self, first: signal.Signals, patience_s: float) -> bool:
        """Send ``first``, and KILL to everything after ``patience_s``. Return True if it obeyed.

        A marked process outside the tree gets ``first`` itself: srun, told to end, kills its step
        at once (Slurm 22.05), and it ends when the step does.
        """
        with uninterrupted():
            apart = self._apart()
            _send(_heads(apart), first)
            if not apart:
                self.send(first)
            obeyed = self._ended_within(patience_s)
            _send(self.processes(), signal.SIGKILL)
            if not obeyed and not self._ended_within(KILL_S):
                self._guard.kill()
                self._guard.wait()
        return obeyed

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command, if it still runs."""
        if self._guard.poll() is None:
            self._guard.send_signal(number)

    def _tree(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def _apart(self) -> list[psutil.Process]:
        """Return the marked processes outside the guard's tree."""
        if not self._mark:
            return []
        marked = list(_marked(self._mark))  # before the tree, which may grow meanwhile
        ours = {self.pid, *(process.pid for process in self._tree())}
        return [process for process in marked if process.pid not in ours]

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


def _started(
    command: Sequence[str], env: Mapping[str, str], output: IO[bytes], folder: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def listener(processes: Iterable[psutil.Process], port: int) -> psutil.Process | None:
    """Return the first of ``processes`` with a TCP socket listening on ``port``; None: there is
    none among those that we may look into."""
    return next((process for process in processes if port in _ports(process)), None)


def _ports(process: psutil.Process) -> set[int]:
    with suppress(psutil.Error):
        sockets = process.net_connections(kind="tcp")
        return {s.laddr.port for s in sockets if s.status == psutil.CONN_LISTEN}
    return set()


def _marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the processes with ``mark`` in their environment, as far as we may read it."""
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, psutil.NoSuchProcess):
            if mark.encode() in file.read_bytes().split(b"\0"):
                yield psutil.Process(int(file.parent.name))


def _heads(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Return those whose parent is none of them."""
    pids = {process.pid for process in processes}
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.ppid() not in pids:
                found.append(process)
    return found


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
