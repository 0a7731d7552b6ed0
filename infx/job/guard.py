"""Runs a command so that nothing of it survives: ``python -m infx.job.guard PARENT COMMAND…``.

The kernel can kill a child with its parent (PR_SET_PDEATHSIG), but not its grandchildren. The
guard stands between: it is their reaper of last resort (PR_SET_CHILD_SUBREAPER), so no process of
the command, daemons included, leaves its tree. It ends them all when the command ends, and when
PARENT dies, even by kill -9. TERM and INT go on to the command, whose exit code it returns (128 + n
for signal n).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["die_with", "main"]

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
KILL_S = 10.0

# Loaded before the fork: between fork and exec nothing but plain calls may run.
_LIBC = ctypes.CDLL(None)


def main(argv: Sequence[str]) -> int:
    """Run ``argv[1:]`` as a child of the process ``argv[0]``; return its exit code."""
    parent, command = int(argv[0]), argv[1:]
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    die_with(parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    child = _start(command)
    code = _watch(child, parent)
    _end_all()
    return code


def die_with(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send ``number`` to this process when ``parent``, its parent, ends.

    What the kernel watches is the thread that made this process. Safe between fork and exec.
    """
    _LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the call above
        os._exit(128 + number)


def _start(command: Sequence[str]) -> int:
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    die_with(guard, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # neither ours nor the job's
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"infx: error: cannot start {command[0]}: {error.strerror}", file=sys.stderr)
    os._exit(127)


def _watch(child: int, parent: int) -> int:
    """Return the command's exit code; 143 when ``parent`` died first."""
    while True:
        number = signal.sigwait(WATCHED)
        if number == signal.SIGCHLD:
            code = _reap().get(child)
            if code is not None:
                return code if code >= 0 else 128 - code
        elif os.getppid() != parent:
            return 128 + signal.SIGTERM
        else:
            os.kill(child, number)


def _reap() -> dict[int, int]:
    codes: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    return codes


def _end_all() -> None:
    """Kill children until there are none: those of a killed child become ours."""
    until = time.monotonic() + KILL_S
    while time.monotonic() < until:
        children = _children()
        if not children:
            return
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
        _reap()


def _children() -> list[int]:
    me, found = os.getpid(), []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # pid (name) state ppid …; a name may hold spaces and brackets
            if int(stat.read_text().rpartition(")")[2].split()[1]) == me:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
