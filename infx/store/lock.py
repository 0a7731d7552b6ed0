"""One writer a run: a lock on a file in the run's folder that ends with its process."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path
from types import TracebackType

from infx.domain.errors import UsageError
from infx.store.writing import writing

__all__ = ["RunLock", "holder"]

NAME = "driver.lock"
# A reader that asks who holds the lock takes it for microseconds; a driver tries this long.
PATIENCE_S = 0.5


class RunLock:
    """Held by the process that drives a run. The kernel frees it when that process dies, however.

    The file's text (``pid 12 on host``) is for people and for `holder`; the lock itself is flock.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._handle = -1

    def __enter__(self) -> RunLock:
        """Raises UsageError ``run-active`` when another process holds it, ``not-a-run`` when the
        folder is gone, InfraError ``results-unwritable``."""
        if not self._run_dir.is_dir():
            raise UsageError(
                "not-a-run",
                f"the files of run {self._run_dir.name} are gone: {self._run_dir}",
                hint="put them back, or start another run with infx sweep",
            )
        with writing(self._run_dir):
            self._handle = os.open(self._run_dir / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        if not _try_lock(self._handle, fcntl.LOCK_EX, PATIENCE_S):
            os.close(self._handle)
            raise UsageError(
                "run-active",
                f"run {self._run_dir.name} is driven by {holder(self._run_dir) or 'another infx'}",
                hint=f"watch it with infx watch {self._run_dir.name}, or end it with infx cancel",
            )
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)


def holder(run_dir: Path) -> str:
    """Return who drives the run (``pid 12 on host``), or an empty string when nobody does."""
    try:
        handle = os.open(run_dir / NAME, os.O_RDONLY)
    except OSError:
        return ""
    try:
        free = _try_lock(handle, fcntl.LOCK_SH, 0)
        return "" if free else os.pread(handle, 200, 0).decode().strip() or "another infx"
    finally:
        os.close(handle)


def _try_lock(handle: int, kind: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True
