"""What a job left running, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[psutil.Process]:
    """Return the processes whose command or working folder names ``folder``."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd()]
        except (psutil.Error, OSError):
            continue
        if any(str(folder) in word for word in words):
            found.append(process)
    return found


def wait_until(true: Callable[[], object], limit_s: float) -> bool:
    """Return True as soon as ``true()`` is, False after ``limit_s``."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if true():
            return True
        time.sleep(0.05)
    return bool(true())
