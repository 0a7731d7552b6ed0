"""The processes of ranks 1 to n-1, as rank 0 sees them: started, told, watched, ended."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from infx.domain.errors import EngineError
from infx.engine.config import EngineConfig
from infx.engine.ranks.wire import receive, send

__all__ = ["Processes", "Setup"]

# Import of torch and the weights: 3 s on two busy cores, more from a cold disk.
START_LIMIT_S = 120.0
# A process that is killed leaves its connections a moment before it can be waited for.
DEATH_LIMIT_S = 2.0
END_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What a rank is told first: which one it is, of what, and the port of the rendezvous."""

    config: EngineConfig
    rank: int
    port: int


@dataclass(frozen=True, slots=True)
class _Rank:
    number: int
    process: subprocess.Popen[bytes]
    link: socket.socket


class Processes:
    """Ranks 1 to ``config.tp - 1``, each with a socket to rank 0: its end ends the rank.

    The kernel kills them, too, when the thread that made this object ends. When one is lost, the
    EngineError (``rank-died``) says which and how, and the others are killed.
    """

    def __init__(self, config: EngineConfig, port: int) -> None:
        self._limit_s = config.rank_limit_s
        self._ranks = [_start(number) for number in range(1, config.tp)]
        for rank in self._ranks:
            self._send(rank, pickle.dumps(Setup(config, rank.number, port)))

    @property
    def pids(self) -> list[int]:
        """Process ids of all ranks, rank 0's first."""
        return [os.getpid(), *(rank.process.pid for rank in self._ranks)]

    def await_loaded(self) -> None:
        """Wait until each rank has its weights. Raises EngineError."""
        until = time.monotonic() + START_LIMIT_S
        for rank in self._ranks:
            rank.link.settimeout(max(until - time.monotonic(), 0.001))
            with suppress(TimeoutError):
                if receive(rank.link) is not None:
                    rank.link.settimeout(self._limit_s)
                    continue
            raise self.lost(rank.number, START_LIMIT_S)

    def tell(self, data: bytes) -> None:
        """Send ``data`` to every rank. Raises EngineError."""
        for rank in self._ranks:
            self._send(rank, data)

    def check(self) -> None:
        """Raise EngineError when a rank has ended."""
        for rank in self._ranks:
            if rank.process.poll() is not None:
                raise self.lost(rank.number, self._limit_s)

    def lost(self, number: int, waited_s: float) -> EngineError:
        """Return what happened to rank ``number``, waited for in vain; kill all ranks."""
        rank = self._ranks[number - 1]
        with suppress(subprocess.TimeoutExpired):
            rank.process.wait(DEATH_LIMIT_S)
        error = _told(rank, waited_s)
        self.kill()
        return error

    def end(self) -> None:
        """Close the sockets, which ends the ranks; kill those that do not follow."""
        for rank in self._ranks:
            rank.link.close()
        until = time.monotonic() + END_LIMIT_S
        with suppress(subprocess.TimeoutExpired):
            for rank in self._ranks:
                rank.process.wait(max(until - time.monotonic(), 0))
        self.kill()

    def kill(self) -> None:
        """End all ranks at once."""
        for rank in self._ranks:
            rank.process.kill()
        for rank in self._ranks:
            rank.process.wait()

    def _send(self, rank: _Rank, data: bytes) -> None:
        try:
            send(rank.link, data)
        except OSError as error:
            raise self.lost(rank.number, self._limit_s) from error


def _start(number: int) -> _Rank:
    ours, theirs = socket.socketpair()
    safe = ["-P"] if sys.flags.safe_path else []
    command = [sys.executable, *safe, "-m", "infx.engine.ranks", str(number), str(os.getpid())]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    return _Rank(number, process, ours)


def _told(rank: _Rank, waited_s: float) -> EngineError:
    code = rank.process.poll()
    if code is None:
        how = f"did not answer within {waited_s:g} s and still runs: it hangs or is stopped"
    elif code < 0:
        how = f"was ended by signal {-code} ({signal.Signals(-code).name})"
    else:
        how = f"ended with exit code {code}; what it said stands above"
    message = f"rank {rank.number} (pid {rank.process.pid}) {how}; start the server again"
    return EngineError("rank-died", message)
