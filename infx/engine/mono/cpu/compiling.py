"""Compiling builds: once a machine, and several of them beside each other.

Processes that start at once on a cold machine wait for the one that compiles; one that has waited
for long compiles itself, since what holds the lock may hang.
"""

from __future__ import annotations

import fcntl
import hashlib
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

from infx.domain.errors import InfraError
from infx.engine.mono.cpu.compiled import Build, imported, writing

__all__ = ["compile_builds", "compile_file"]

PATIENCE_S = 240.0
POLL_S = 0.1
EXPECTED_S = {"sparse": 20, "sparse_dense": 15, "dense": 10}  # of a processor of 2021


def compile_builds(builds: Sequence[Build], progress: TextIO) -> None:
    """Have each build compiled, or taken from disk; say on ``progress`` what is being compiled.

    Raises InfraError (``builds-unwritable``).
    """
    missing = [build for build in builds if not _is_kept(build.path)]
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
        with writing(build.path.parent):
            _compile(build.run)


def compile_file(path: Path, patience_s: float = PATIENCE_S) -> None:
    """Compile the build at ``path``, unless another process does so within ``patience_s``.

    Raises InfraError (``builds-unwritable``).
    """
    with writing(path.parent), _lock(path, patience_s):
        if not _is_kept(path):
            for file in _made(path):
                file.unlink(missing_ok=True)
        _compile(imported(path).run)
        _mark(path).write_text(_fingerprint(path), encoding="utf-8")


def _compile_apart(build: Build) -> None:
    subprocess.run([sys.executable, "-m", __name__, str(build.path)], check=False)


def _compile(run: object) -> None:
    run.compile((types.int64, types.int64, types.int64))  # type: ignore[attr-defined]


def _is_kept(path: Path) -> bool:
    """Return whether what was compiled of ``path`` is on disk, as it was written.

    Numba runs what it finds there: a damaged file would be a crash, or other machine code.
    """
    mark = _mark(path)
    return mark.exists() and mark.read_bytes() == _fingerprint(path).encode()


def _mark(path: Path) -> Path:
    """Return the file that says that ``path`` was compiled, by this version of Python."""
    return path.with_suffix(f".{sys.implementation.cache_tag}.compiled")


def _fingerprint(path: Path) -> str:
    """Return a digest of what numba goes by: the time of ``path``, and the files it made of it."""
    digest = hashlib.sha256(str(path.stat().st_mtime_ns).encode())
    for file in _made(path):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _made(path: Path) -> list[Path]:
    """Return numba's files of ``path`` and this version of Python."""
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    folder = Path(imported(path).run.stats.cache_path)
    return sorted(folder.glob(f"{path.stem}.run-*.{version}*.nb[ci]"))


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
    try:
        compile_file(Path(sys.argv[1]))
    except InfraError as error:
        sys.exit(f"infx: {error}")
