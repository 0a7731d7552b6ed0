"""Builds are compiled once, though several processes ask at the same time."""

from __future__ import annotations

import errno
import fcntl
import io
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from infx.domain.errors import InfraError
from infx.engine.mono.cpu.compiling import compile_builds, compile_file

# Compiling it takes a second and leaves a line that names the process.
SLOW_BUILD = """
import os, time
from numba import njit, types
from numba.extending import intrinsic

@intrinsic
def noted(typing, x):
    with open({log!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(0.5)
    return x(x), lambda context, builder, signature, args: args[0]

@njit(cache=True)
def run(call, first, end):
    return noted(call)
"""


@pytest.fixture
def build(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / f"build_{request.node.name}.py"
    path.write_text(SLOW_BUILD.format(log=str(tmp_path / "log")))
    return path


def compilers(build: Path) -> set[str]:
    log = build.parent / "log"
    return set(log.read_text().split()) if log.exists() else set()


@pytest.mark.slow
def test_of_two_processes_one_compiles(build: Path) -> None:
    command = [sys.executable, "-m", "infx.engine.mono.cpu.compiling", str(build)]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(compilers(build)) == 1


def test_who_has_waited_for_long_compiles_itself(build: Path) -> None:
    with build.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        begun = time.monotonic()
        compile_file(build, patience_s=0.3)
        assert time.monotonic() - begun > 0.3
    assert len(compilers(build)) == 1


def test_what_is_compiled_is_said_once(build: Path) -> None:
    made = SimpleNamespace(
        path=build, table=SimpleNamespace(kind="sparse", width=16), run=_run(build)
    )
    told = io.StringIO()
    compile_builds([made], told)  # type: ignore[list-item]
    line, *others = told.getvalue().splitlines()
    assert line.startswith("infx: compiling the sparse layer for 16 rows")
    assert not others
    again = io.StringIO()
    compile_builds([made], again)  # type: ignore[list-item]
    assert not again.getvalue()


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_again(build: Path) -> None:
    compile_file(build)
    (code,) = build.parent.rglob("*.nbc")
    good = code.read_bytes()
    before = compilers(build)
    for bad in (good[: len(good) // 2], bytes(b ^ 1 for b in good), b""):
        code.write_bytes(bad)
        # Another process: this one has the function in memory.
        command = [sys.executable, "-m", "infx.engine.mono.cpu.compiling", str(build)]
        assert subprocess.run(command, capture_output=True, text=True).returncode == 0
        assert len(compilers(build)) == len(before) + 1
        before = compilers(build)
        assert code.read_bytes() != bad
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    assert compilers(build) == before, "what is whole is taken from disk"


def test_a_full_disk_is_said(build: Path) -> None:
    compile_file(build)

    class Full:
        def compile(self, signature: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    made = SimpleNamespace(path=build, run=Full())
    with pytest.raises(InfraError, match="No space left on device; name a folder") as raised:
        compile_builds([made], io.StringIO())  # type: ignore[list-item]
    assert raised.value.code == "builds-unwritable"


def _run(build: Path) -> object:
    from infx.engine.mono.cpu.compiled import imported

    return imported(build).run
