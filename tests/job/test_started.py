"""What a running server was started with, as the operating system tells it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from infx.job.started import started_with

LISTEN = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[tuple[psutil.Process, int]]:
    """A process that listens, and its port."""
    command = [sys.executable, "-c", LISTEN, "--spec-decode-acceptance-length", "2.78"]
    env = {**os.environ, "SGLANG_SIMULATE_ACC_LEN": "2.78"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=env, text=True, **pipes) as process:
        assert process.stdout
        yield psutil.Process(process.pid), int(process.stdout.readline())
        process.communicate()


def test_the_words_and_the_environment_of_the_listener(
    server: tuple[psutil.Process, int],
) -> None:
    process, port = server
    told = started_with([psutil.Process(), process], port)
    assert told is not None
    assert told["argv"][-2:] == ["--spec-decode-acceptance-length", "2.78"]
    assert told["env"]["SGLANG_SIMULATE_ACC_LEN"] == "2.78"


def test_a_process_whose_start_cannot_be_read_tells_nothing() -> None:
    """One that renames itself may overwrite both: what is left is no proof of anything."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", LISTEN], env={}, text=True, **pipes) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        assert started_with([psutil.Process(process.pid)], port) is None
        process.communicate()


def test_a_port_on_which_none_of_them_listens(server: tuple[psutil.Process, int]) -> None:
    _, port = server
    assert started_with([psutil.Process()], port) is None
