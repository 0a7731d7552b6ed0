"""Compiling builds: once a machine, and several of them beside each other.

Processes that start at once on a cold machine wait for the one that compiles; one that has waited
for long compiles itself, since what holds the lock may hang.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from numba import types

from infx.engine.mono.cpu.compiled import Build, imported

__all__ = ["compile_builds", "compile_file"]

PATIENCE_S = 240.0
POLL_S = 0.1
EXPECTED_S = {"sparse": 20, "sparse_dense": 15, "dense": 10}  # of a processor of 2021


def compile_builds(builds: Sequence[Build], progress: TextIO) -> None:
    """Have each build compiled, or taken from disk; say on ``progress`` what is being compiled."""
    missing = [build for build in builds if not _mark(build.path).exists()]
    for build in missing:
        print(
            f"infx: compiling the {build.table.kind} layer for {build.table.width} rows, once on"
            f" this machine: about {EXPECTED_S[build.table.kind]} s of a processor",
            file=progress,
            flush=True,
        )
    if len(missing) > 1:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(_compile_apart, missing))
    elif missing:
        compile_file(missing[0].path)
    # What another process compiled is on disk; what it failed to compile is compiled here.
    for build in builds:
        _compile(build.run)


def compile_file(path: Path, patience_s: float = PATIENCE_S) -> None:
    """Compile the build at ``path``, unless another process does so within ``patience_s``."""
    with _lock(path, patience_s):
        _compile(imported(path).run)
        _mark(path).touch()


def _compile_apart(build: Build) -> None:
    subprocess.run([sys.executable, "-m", __name__, str(build.path)], check=False)


def _compile(run: object) -> None:
    run.compile((types.int64, types.int64, types.int64))  # type: ignore[attr-defined]


def _mark(path: Path) -> Path:
    """Return the file that says that ``path`` was compiled."""
    return path.with_suffix(".compiled")


@contextmanager
def _lock(path: Path, patience_s: float) -> Iterator[None]:
    """Hold the lock of a build; after ``patience_s`` go on without it."""
    with path.with_suffix(".lock").open("w") as file:
        end = time.monotonic() + patience_s
        while not _taken(file) and time.monotonic() < end:
            time.sleep(POLL_S)
        yield


def _taken(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    compile_file(Path(sys.argv[1]))
