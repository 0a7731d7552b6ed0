"""The names of a lab's nodes in /etc/hosts: one marked line a lab."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["HOSTS", "may_write", "remove", "with_line", "without_line", "write"]

HOSTS = Path("/etc/hosts")


def may_write() -> bool:
    """Return whether this user can name nodes."""
    return os.access(HOSTS, os.W_OK)


def write(cluster: str, names: Sequence[str]) -> None:
    """Let ``names`` mean 127.0.0.1."""
    _edit(lambda text: with_line(text, cluster, names))


def remove(cluster: str) -> None:
    """Take the line of ``cluster`` out; those of other labs stay."""
    _edit(lambda text: without_line(text, cluster))


def with_line(text: str, cluster: str, names: Sequence[str]) -> str:
    """Return ``text`` with exactly one line of ``cluster``."""
    kept = without_line(text, cluster)
    if kept and not kept.endswith("\n"):
        kept += "\n"
    return f"{kept}127.0.0.1 {' '.join(names)} {_mark(cluster)}\n"


def without_line(text: str, cluster: str) -> str:
    """Return ``text`` without the line of ``cluster``."""
    mark = _mark(cluster)
    return "".join(line for line in text.splitlines(True) if not line.rstrip().endswith(mark))


def _mark(cluster: str) -> str:
    return f"# infx {cluster}"


def _edit(change: Callable[[str], str]) -> None:
    # In place and under a lock: containers mount the file, so that it cannot be replaced.
    with HOSTS.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = file.read()
        after = change(before)
        if after == before:
            return
        file.seek(0)
        file.write(after)
        file.truncate()
