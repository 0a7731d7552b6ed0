"""Starts a real engine process on a free port, and ends it."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# On a machine that has compiled no layers yet, and does other things beside.
COMPILED_LIMIT_S = 300.0
LINE = re.compile(r"listening on (http://\S+),")


@dataclass
class Running:
    """A server: its process, address and log."""

    process: subprocess.Popen[str]
    url: str
    log: list[str]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            text = answer.read().decode()
        return text if path == "/metrics" else json.loads(text)

    def post(self, path: str, body: Any, timeout_s: float = 120) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def stream(self, path: str, body: dict[str, Any]) -> list[Any]:
        data = json.dumps(body | {"stream": True}).encode()
        request = urllib.request.Request(self.url + path, data=data)
        with urllib.request.urlopen(request, timeout=120) as answer:
            lines = [line.decode().strip() for line in answer if line.strip()]
        assert lines[-1] == "data: [DONE]"
        assert all(line.startswith("data: ") for line in lines)
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]

    def metric(self, name: str) -> float:
        found = re.search(rf"^infx:{re.escape(name)} (\S+)$", self.get("/metrics"), re.MULTILINE)
        assert found, name
        return float(found[1])

    def until(self, condition: Any, limit_s: float = 60) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, "".join(self.log)
            time.sleep(0.01)


def start(*flags: str, program: Sequence[str] = ()) -> Running:
    """Start an engine, or a ``program`` that takes its flags, and return it when it is ready."""
    engine = program or (sys.executable, "-m", "infx.engine")
    command = [*engine, "--port", "0", "--threads", "1", *flags]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stderr
    log: list[str] = [process.stderr.readline()]
    found = LINE.search(log[0])
    assert found, log[0] + process.stderr.read()
    threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True).start()
    server = Running(process, found[1], log)
    server.until(lambda: _ready(server), COMPILED_LIMIT_S)
    return server


def end(server: Running) -> int:
    """TERM the server and return its exit code."""
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
    try:
        return server.process.wait(timeout=40)
    finally:
        server.process.kill()


@contextlib.contextmanager
def running(*flags: str, program: Sequence[str] = ()) -> Iterator[Running]:
    """An engine for the length of a block."""
    server = start(*flags, program=program)
    try:
        yield server
    finally:
        end(server)


def _ready(server: Running) -> bool:
    assert server.process.poll() is None, "".join(server.log)
    try:
        return server.get("/health")["status"] == "ready"
    except urllib.error.HTTPError:
        return False
