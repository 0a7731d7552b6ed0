"""Runs the job program with broken servers, and on a tiny disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "broken_job.py"


@contextmanager
def running_job(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the job of ``folder`` as launch/ does, and end it after the block."""
    with (folder / "infx.log").open("ab") as log:
        command = [sys.executable, "-P", str(PROGRAM), str(folder / "job.json")]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def start_job(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Start the job of ``tmp_path``; it is ended with the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(running_job(tmp_path))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tiny file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False)
    if done.returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    yield place
    subprocess.run(["umount", place], check=True)
