"""``python -m infx.engine.ranks RANK PARENT``: one rank beside rank 0, which starts it.

Standard input is a socket to rank 0 (process PARENT). Exit codes: 0 rank 0 closed it, 1 an error, a
failed exchange among them (with a traceback on stderr).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence

__all__ = ["main"]

PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> int:
    """Serve batches until rank 0 is gone; return the exit code."""
    _die_with(int(argv[1]))
    # Ctrl-C and a scheduler's TERM reach every process: rank 0 alone decides what they mean.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    link = socket.socket(fileno=sys.stdin.fileno())
    from infx.engine.ranks.leaf import serve

    serve(link)
    return 0


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the thread of ``parent`` that made it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
