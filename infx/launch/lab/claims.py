"""Names and ports that only one infx of this machine holds at a time, whoever runs it.

A claim is a socket bound in Linux's abstract namespace: it leaves no file, it needs no folder that
all users can write, and it ends with the process that holds it.
"""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infx.domain.errors import InfraError
from infx.launch.lab.processes import poll

__all__ = ["MOST_NODES", "folder_claim", "port_claim", "usual_port"]

FIRST_PORT = 17_024
BLOCK = 128
BLOCKS = 120
"""From 17,024 up to the ports that Linux gives to clients (32,768 and above)."""
MOST_NODES = BLOCK - 2
TICK_S = 0.02
PATIENCE_S = 60.0


@contextmanager
def folder_claim(folder: Path) -> Iterator[None]:
    """Hold the lab in ``folder``, so that no two commands start or stop it at once.

    Raises InfraError ``lab-failed`` when another holds it for a minute.
    """
    name = _digest(folder)[:16]
    deadline = time.monotonic() + PATIENCE_S
    while (held := _claim(name)) is None:
        if time.monotonic() > deadline:
            hint = "wait for it, or end that process"
            message = f"another infx still starts or stops the lab in {folder}"
            raise InfraError("lab-failed", message, hint=hint)
        time.sleep(TICK_S)
    with held:
        yield


def usual_port(folder: Path) -> int:
    """Return where the ports of the lab in ``folder`` begin, unless they are taken."""
    return FIRST_PORT + BLOCK * (int(_digest(folder), 16) % BLOCKS)


@contextmanager
def port_claim(needed: int, preferred: int, patience_s: float = 0.0) -> Iterator[int]:
    """Hold ``needed`` free ports in a row and give the first, ``preferred`` when that is free.

    ``preferred`` is waited for up to ``patience_s``: what was killed may still be ending. Held
    until the daemons listen, so that two labs that start together do not meet.
    """
    ports = range(preferred, preferred + needed)
    poll(lambda: all(_is_free(port) for port in ports), patience_s)
    starts = [FIRST_PORT + BLOCK * number for number in range(BLOCKS)]
    for first in [preferred, *starts]:
        held = _claim(f"ports-{first}")
        if held is None:
            continue
        with held:
            if all(_is_free(port) for port in range(first, first + needed)):
                yield first
                return
    last = FIRST_PORT + BLOCK * BLOCKS
    message = f"no {needed} free ports in a row between {FIRST_PORT} and {last}"
    raise InfraError("lab-failed", message, hint="end other labs: infx cluster down --dir DIR")


def _digest(folder: Path) -> str:
    return hashlib.sha256(str(folder).encode()).hexdigest()


def _claim(name: str) -> socket.socket | None:
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(f"\0infx-lab-{name}")
    except OSError:
        held.close()
        return None
    return held


def _is_free(port: int) -> bool:
    """Return whether a daemon could listen on ``port``; closed connections do not count."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True
