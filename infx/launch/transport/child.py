"""One command as a child of this process: output in files, a limit, no life after infx's."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from infx.domain.errors import InfraError
from infx.job.guard import die_with

__all__ = ["Child", "content", "running", "written"]

GLANCE_S = 0.2
"""How often to look whether all was said while the command itself does not end."""


@dataclass(frozen=True, slots=True)
class Child:
    """A command that runs, its output in two files."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    def ended(self, limit_s: float, all_said: Callable[[], bool] = bool) -> bool:
        """Wait for its end, or for ``all_said``; False when neither came within ``limit_s``."""
        until = time.monotonic() + limit_s
        while (left := until - time.monotonic()) > 0:
            if _exited(self.process, min(left, GLANCE_S)) or all_said():
                return True
        return self.process.poll() is not None


@contextmanager
def running(
    argv: Sequence[str],
    stdin: IO[bytes] | int,
    environment: Mapping[str, str] | None = None,
    *,
    piped: bool = False,
) -> Iterator[Child]:
    """Start a command in a session of its own; its whole group is killed if it still runs after.

    It dies with the thread that calls this. Its output goes to files, not pipes: who waits for
    the end of a pipe waits for every process that holds it, also for one that the command left
    behind on purpose. Only with ``piped`` is ``out`` a pipe, for another command to read.
    Raises InfraError ``launch-failed``.
    """
    with TemporaryFile() as own, TemporaryFile() as err:
        process = _start(argv, stdin, subprocess.PIPE if piped else own, err, environment)
        try:
            with process.stdout or own as out:
                yield Child(process, out, err)
        finally:
            _kill_group(process)


def content(file: IO[bytes]) -> bytes:
    """Return all of a file whose offset belongs to the process that writes it."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


@contextmanager
def written(data: bytes) -> Iterator[IO[bytes]]:
    """Give a file that holds ``data``, to be read from its start."""
    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _start(
    argv: Sequence[str],
    stdin: IO[bytes] | int,
    out: IO[bytes] | int,
    err: IO[bytes],
    environment: Mapping[str, str] | None,
) -> subprocess.Popen[bytes]:
    parent = os.getpid()
    try:
        return subprocess.Popen(
            list(argv),
            stdin=stdin,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: die_with(parent),
        )
    except OSError as error:
        raise InfraError("launch-failed", f"cannot start {argv[0]}: {error}") from error


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _exited(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Popen.wait sleeps in steps of up to 50 ms, more than a call over ssh takes."""
    if process.poll() is not None:
        return True
    handle = os.pidfd_open(process.pid)
    try:
        select.select([handle], [], [], seconds)
    finally:
        os.close(handle)
    return process.poll() is not None
