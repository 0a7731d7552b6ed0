"""The server's port: one that the attempt's name determines, checked before it is used.

Two jobs of one node hardly ever look at the same port first, and no connection that the kernel
opens for somebody takes it: Linux gives those 32768 and up.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator

from infx.domain.errors import EngineError

__all__ = ["free_port", "ports"]

FIRST, LAST = 20000, 32767
TRIES = 64


def ports(unique_name: str) -> Iterator[int]:
    """Yield the ports that an attempt tries, in order: always the same for the same name."""
    for number in range(TRIES):
        digest = hashlib.sha256(f"{unique_name}/{number}".encode()).digest()
        yield FIRST + int.from_bytes(digest[:8], "big") % (LAST - FIRST + 1)


def free_port(host: str, unique_name: str, wish: int = 0) -> int:
    """Return ``wish`` if nothing listens on it, or the first free one of the name's for 0.

    Raises EngineError (``port-busy``).
    """
    refusal = ""
    for port in (wish,) if wish else ports(unique_name):
        refusal = _refusal(host, port)
        if not refusal:
            return port
    which = f"port {wish}" if wish else f"{TRIES} ports from {FIRST} to {LAST}"
    raise EngineError("port-busy", f"{which} on {host} cannot be taken: {refusal}")


def _refusal(host: str, port: int) -> str:
    """On Linux SO_REUSEADDR refuses a port that somebody listens on, and allows one whose last
    connections are still closing."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return str(error.strerror)
    return ""
