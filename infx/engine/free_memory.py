"""Bytes that this process may still take: what the machine has, within its control groups' limits.

A container sees the whole machine's memory and is killed at its own limit, which stands in the
files of its control group (version 1 or 2) and of the groups around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["free_bytes", "room_in_groups"]


@dataclass(frozen=True, slots=True)
class _Files:
    """Where a version keeps its groups, and how it calls limit, use and idle file pages."""

    root: str
    limit: str
    used: str
    idle: str


_V1 = _Files(
    "sys/fs/cgroup/memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)
_V2 = _Files("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def free_bytes() -> int:
    """Return what is available on the machine, or in the tightest control group when that is less.

    Memory that files fill counts as available: the kernel takes it back.
    """
    import psutil

    return min([psutil.virtual_memory().available, *room_in_groups()])


def room_in_groups(root: Path = Path("/")) -> Iterator[int]:
    """Yield the bytes left in each limited control group of this process, innermost first.

    ``root`` is the folder that holds proc and sys.
    """
    for files, group in _groups(root):
        for place in (group, *group.parents):
            room = _room(root / files.root / place, files)
            if room is not None:
                yield room


def _groups(root: Path) -> Iterator[tuple[_Files, PurePosixPath]]:
    """Yield the process's group of each version that may limit memory."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        group = PurePosixPath(path.strip("/"))
        if number == "0":
            yield _V2, group
        elif "memory" in controllers.split(","):
            yield _V1, group


def _room(folder: Path, files: _Files) -> int | None:
    """Return limit less use of a group; None where it has no limit, or is not to be seen."""
    try:
        limit, used = ((folder / name).read_text() for name in (files.limit, files.used))
        stat = (folder / "memory.stat").read_text()
    except OSError:
        return None
    if not limit.strip().isdecimal():  # "max"
        return None
    idle = dict(line.split() for line in stat.splitlines()).get(files.idle, "0")
    return max(0, int(limit) - int(used) + int(idle))
