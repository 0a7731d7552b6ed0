"""The server under test: started, watched, stopped without a trace."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from infx.domain.errors import EngineError
from infx.domain.point import Arm
from infx.domain.serial import encode_pretty
from infx.frameworks.base import PROCESS, Framework, Launch
from infx.job.engines import located
from infx.job.log_lines import useful_line
from infx.job.process import Program, exit_text
from infx.job.record import write_whole
from infx.job.started import started_with
from infx.job.web import Site

__all__ = ["LOG", "Server", "answers"]

LOG = "server.log"
STATE = "server.json"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

PAGE_S = 60.0
"""vLLM's first /server_info runs a dozen programs to describe its machine: 2 to 10 s when busy."""

STOP_S = 10.0
"""After TERM a server may finish what it holds; llama.cpp ends in 0.1 s, infx's engine drains."""


class Server:
    """One engine start. Call `infx.job.readiness.wait_ready` before the first measurement."""

    def __init__(
        self,
        framework: Framework,
        arm: Arm,
        folder: Path,
        *,
        host: str,
        port: int,
        prefix: Sequence[str] = (),
    ) -> None:
        """Choose a nonce for a server whose output goes to server.log in ``folder``; ``prefix`` are
        the words that start its command elsewhere, in a container.

        Raises what the framework says.
        """
        self.framework, self.arm, self.folder = framework, arm, folder
        self.nonce = secrets.token_hex(8)
        self.site = Site(host, port)
        self.launch: Launch = framework.launch(arm, host, port, folder, self.nonce)
        self.argv = (*prefix, *located(self.launch.argv, arm.image))
        self.log = folder / LOG
        self.started_s = time.time()
        self._program: Program | None = None

    def start(self, env: Mapping[str, str]) -> None:
        """Write the launch's files, and run the command with ``env`` and its variables over it.

        Raises InfraError when it cannot be started, or the folder not be written.
        """
        for name, text in self.launch.files.items():
            write_whole(self.folder / name, text.encode())
        self._program = Program(
            self.argv,
            env={**env, **self.launch.env},
            log=self.log,
            folder=self.folder,
            nonce=self.nonce,
        )
        self._save(self._program.pid)

    @property
    def log_bytes(self) -> int:
        """The size of the log: it grows while the server makes progress."""
        return self.log.stat().st_size if self.log.exists() else 0

    @property
    def listens(self) -> bool:
        """True when a process of ours owns the listening socket."""
        return bool(self._program and self._program.listens_on(self.site.port))

    def since(self, start: int) -> str:
        """Return the first useful line that the log got after byte ``start``."""
        return useful_line(self.log, start)

    def check(self, code: str, start: int = 0) -> None:
        """Raise EngineError with ``code`` and the log's useful line when the server has ended."""
        ended = self._program.exit_code() if self._program else None
        if ended is not None:
            raise EngineError(code, f"the server ended ({exit_text(ended)}): {self.since(start)}")

    def answers(self) -> dict[str, Any]:
        """Return path -> parsed body of the framework's pages that answer 200 with JSON.

        Raises EngineError (``server-died``, ``server-hung``) when nothing answers.
        """
        processes = self._program.processes() if self._program else []
        try:
            return answers(self.framework, self.site, processes)
        except (ConnectionError, TimeoutError) as error:
            self.check("server-died")
            message = f"healthy, but its pages do not answer: {error}; its log: {self.since(0)}"
            raise EngineError("server-hung", message) from error

    def stop(self, limit_s: float = STOP_S) -> None:
        """End it, if it was started: TERM, KILL after ``limit_s``; no process of it is left."""
        if self._program:
            self._program.stop(signal.SIGTERM, limit_s)

    def _save(self, pid: int) -> None:
        state = {
            "pid": pid,
            "host": self.site.host,
            "port": self.site.port,
            "nonce": self.nonce,
            "started_s": self.started_s,
            "argv": self.argv,
        }
        write_whole(self.folder / STATE, encode_pretty(state).encode())


def answers(
    framework: Framework, site: Site, processes: Iterable[psutil.Process] | None = None
) -> dict[str, Any]:
    """Return path -> parsed body of the framework's pages that answer 200 with JSON at ``site``.

    What its process was started with is read from ``processes``; without any given, from those of
    this machine when the site is of this machine.
    """
    found: dict[str, Any] = {}
    for path in framework.pages:
        body = _started(site, processes) if path == PROCESS else _page(site, path)
        if body is not None:
            found[path] = body
    return found


def _page(site: Site, path: str) -> Any:
    answer = site.get(path, PAGE_S)
    return answer.body if answer.status == 200 else None


def _started(site: Site, processes: Iterable[psutil.Process] | None) -> Any:
    if processes is None:
        processes = psutil.process_iter() if site.host in LOOPBACK else []
    return started_with(processes, site.port)
