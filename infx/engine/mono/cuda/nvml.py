"""What NVML says of a GPU: free memory, and which processes compute on it. It makes no context."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Seen", "look", "others"]

_LIBRARY = "libnvidia-ml.so.1"
_MOST_PROCESSES = 1024  # NVML lists none where there are more


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t, of the third version of the call."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """Free bytes of a GPU, and the ids of all processes that compute on it; None: not told."""

    free_bytes: int | None = None
    processes: tuple[int, ...] | None = None


def look(device: bytes) -> Seen:
    """Return what NVML tells of the GPU with these 16 bytes of UUID; nothing where it cannot."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return Seen()
    if library.nvmlInit_v2():
        return Seen()
    try:
        return _look(library, f"GPU-{uuid.UUID(bytes=device)}".encode())
    finally:
        library.nvmlShutdown()


def _look(library: Any, name: bytes) -> Seen:
    handle, memory = ctypes.c_void_p(), _Memory()
    if library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)):
        return Seen()
    told = not library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    count, found = ctypes.c_uint(_MOST_PROCESSES), (_Process * _MOST_PROCESSES)()
    ask = getattr(library, "nvmlDeviceGetComputeRunningProcesses_v3", lambda *_: 1)
    listed = not ask(handle, ctypes.byref(count), found)
    return Seen(
        memory.free if told else None,
        tuple(process.pid for process in found[: count.value]) if listed else None,
    )


def others(processes: Sequence[int] | None, own: int, has_context: bool) -> int | None:
    """Return how many of ``processes`` are not this one, ``own``; None: that cannot be told.

    NVML numbers processes as the machine does, a container as it likes: where ``own`` is not among
    them and this process has a context on the GPU, one of them is this one.
    """
    if processes is None:
        return None
    if own in processes:
        return len(processes) - 1
    if not has_context:
        return len(processes)
    return len(processes) - 1 if processes else None
