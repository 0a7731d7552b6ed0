"""The processes of one lab, found by what their environment says: never by a bare name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["belonging", "is_daemon", "kill", "lives", "poll", "stop"]

TICK_S = 0.02
_PROC = Path("/proc")
_OURS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "slurmstepd")
"""Beginnings of the programs' names; Debian's are called slurmd-wlm and so on."""


def poll(done: Callable[[], bool], limit_s: float) -> bool:
    """Return True as soon as ``done`` does, False after ``limit_s``; it is asked every 20 ms."""
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK_S)
    return True


def is_daemon(pid: int, conf: Path) -> bool:
    """Return whether ``pid`` is a program of Slurm, munge or MariaDB started for ``conf``."""
    return _runs_ours(pid) and _says(pid, f"SLURM_CONF={conf}")


def belonging(conf: Path, cluster: str) -> list[int]:
    """Return the pids of a lab's daemons, of the steps of its jobs and of all that jobs started.

    Slurm without cgroups does not follow a process that left its session: its environment still
    names the cluster. This process is left out.
    """
    return [
        pid
        for pid in _pids()
        if pid != os.getpid()
        and (is_daemon(pid, conf) or _says(pid, f"SLURM_CLUSTER_NAME={cluster}"))
    ]


def lives(pid: int) -> bool:
    """Return whether any thread of ``pid`` still runs; a zombie that nobody has reaped does not.

    A killed process is a zombie as soon as its first thread has ended: the others still hold its
    ports until they end too.
    """
    try:
        stats = [(task / "stat").read_text() for task in (_PROC / str(pid) / "task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return (_PROC / str(pid) / "task").exists() and lives(pid)  # a thread ended meanwhile
    return any(stat.rpartition(")")[2].split()[0] not in ("Z", "X") for stat in stats)


def stop(pids: Iterable[int], limit_s: float) -> None:
    """End ``pids``: TERM, then KILL for those that live after ``limit_s``."""
    waited = [pid for pid in pids if _signal(pid, signal.SIGTERM)]
    if not poll(lambda: not any(lives(pid) for pid in waited), limit_s):
        kill(waited)


def kill(pids: Iterable[int]) -> None:
    """KILL ``pids`` and wait until they are gone."""
    waited = [pid for pid in pids if _signal(pid, signal.SIGKILL)]
    poll(lambda: not any(lives(pid) for pid in waited), 5.0)


def _pids() -> list[int]:
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _runs_ours(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "exe").readlink().name.startswith(_OURS)
    except OSError:
        return False


def _says(pid: int, setting: str) -> bool:
    try:
        words = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(setting) in words
