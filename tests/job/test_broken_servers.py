"""Each way a server can fail ends as its own code, with a sentence that says what to look at."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.job.spec import Site
from tests.job.conftest import PROGRAM, running_job
from tests.job.jobs import arm, events, point, records, write_job
from tests.job.processes import processes_of, wait_until

pytestmark = pytest.mark.slow

Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.mark.parametrize(
    ("fault", "code", "sentence"),
    [
        ("dies-at-start", "server-exited", "exit code 1): ValueError: the weights are 3 bytes"),
        ("dies-on-first-request", "first-request", "exit code 7): CUDA error: device-side"),
        ("error-on-first-request", "first-request", "HTTP 500: {"),
        ("engine-dies-on-first-request", "first-request", "AssertionError: no sampling here"),
        ("no-token", "first-request", "HTTP 200: {"),
        ("another-model", "wrong-model", "lists another-model, expected 'mini'"),
        ("another-nonce", "wrong-server", "repeats nonce '0000000000000000'"),
    ],
)
def test_before_it_is_ready(
    fault: str, code: str, sentence: str, tmp_path: Path, start_job: Start
) -> None:
    broken = arm(options={"fault": fault})
    write_job(tmp_path, point(broken, conc=1), point(broken, conc=2))
    assert start_job().wait(30) == 0
    check_both_failed(tmp_path, code, sentence)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("silent", "silent for 1 s"),
        ("logs-forever", "not ready after 4 s though its log still grows"),
        ("hangs-on-first-request", "first request had no answer in 1 s"),
    ],
)
def test_hanging(fault: str, sentence: str, tmp_path: Path, start_job: Start) -> None:
    broken = arm(options={"fault": fault}, start_limit_s=1)
    write_job(tmp_path, point(broken, conc=1), point(broken, conc=2))
    assert start_job().wait(30) == 0
    check_both_failed(tmp_path, "server-hung", sentence)


def check_both_failed(folder: Path, code: str, sentence: str) -> None:
    found = records(folder)
    assert len(found) == 2
    for record in found:
        assert str(record.status) == f"failed:{code}"
        assert sentence in record.status.sentence
        assert record.artifacts["server-log"] == "server.log"
    assert not processes_of(folder)


def test_a_refused_arm_starts_nothing(tmp_path: Path, start_job: Start) -> None:
    write_job(tmp_path, point(arm(options={"fault": "none"}, axes=Axes(conc=0, tp=2))))
    assert start_job().wait(30) == 0
    assert str(records(tmp_path)[0].status) == "failed:unsupported-tp"
    assert not (tmp_path / "server.log").exists()


def test_a_busy_port(tmp_path: Path, start_job: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_job(tmp_path, point(arm(options={"fault": "none"})), port=port)
        assert start_job().wait(30) == 0
    status = records(tmp_path)[0].status
    assert str(status) == "failed:port-busy"
    assert str(port) in status.sentence


def test_another_program_answers_on_the_port(tmp_path: Path, start_job: Start) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})))
    job, state = start_job(), tmp_path / "server.json"
    assert wait_until(state.exists, 20)
    port = json.loads(state.read_text())["port"]
    with HTTPServer(("127.0.0.1", port), _Healthy) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        assert job.wait(30) == 0
        stranger.shutdown()
    status = records(tmp_path)[0].status
    assert str(status) == "failed:wrong-server"
    assert f"port {port} is answered by a process that infx did not start" in status.sentence
    assert not processes_of(tmp_path)


class _Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_slow_but_logging_start_is_waited_for(tmp_path: Path, start_job: Start) -> None:
    """It logs for 2 s, twice its limit; then the measurement refuses: acceptance is not told."""
    planned = Acceptance("synthetic", 2.78, k=3)
    broken = arm(options={"fault": "slow-but-logging"}, start_limit_s=1, acceptance=planned)
    write_job(tmp_path, point(broken))
    assert start_job().wait(30) == 0
    assert "server-ready" in [event["event"] for event in events(tmp_path)]
    status = records(tmp_path)[0].status
    assert str(status) == "failed:acceptance-mode"
    assert "synthetic at length 2.78" in status.sentence


def test_a_stubborn_server_is_killed(tmp_path: Path, start_job: Start) -> None:
    planned = Acceptance("synthetic", 2.0, k=3)
    write_job(tmp_path, point(arm(options={"fault": "ignores-term"}, acceptance=planned)))
    assert start_job().wait(40) == 0
    assert not processes_of(tmp_path)


def test_a_server_that_leaves_daemons(tmp_path: Path, start_job: Start) -> None:
    planned = Acceptance("synthetic", 2.0, k=3)
    write_job(tmp_path, point(arm(options={"fault": "daemon"}, acceptance=planned)))
    assert start_job().wait(40) == 0
    assert not processes_of(tmp_path)


MEASURED = {
    "dies-when-measured": (99, "server-died", "killed by SIGSEGV): RuntimeError: out of pages"),
    "fails-when-measured": (99, "client-failed", "requests failed, most with"),
    "hangs-when-measured": (4, "client-hung", "did not end within 4 s"),
}
"""A fault, the point's limit in s, the code, the sentence."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the job of each fault; they run side by side."""
    folder = tmp_path_factory.mktemp("measured")
    with ExitStack() as stack:
        jobs = []
        for fault, (limit_s, _, _) in MEASURED.items():
            broken = point(arm(options={"fault": fault}))
            write_job(folder / fault, broken, site=Site(point_limit_s=limit_s))
            jobs.append(stack.enter_context(running_job(folder / fault)))
        assert [job.wait(100) for job in jobs] == [0, 0, 0]
    return folder


@pytest.mark.parametrize("fault", MEASURED)
def test_while_it_is_measured(fault: str, measured: Path) -> None:
    _, code, sentence = MEASURED[fault]
    folder = measured / fault
    record = records(folder)[0]
    assert str(record.status) == f"failed:{code}"
    assert sentence in record.status.sentence
    assert (folder / record.artifacts["aiperf"] / "aiperf.log").exists()
    assert not processes_of(folder)


def test_a_full_disk_ends_the_job(tiny_disk: Path) -> None:
    write_job(tiny_disk, point(arm(options={"fault": "dies-at-start"})))
    free = os.statvfs(tiny_disk).f_bavail * os.statvfs(tiny_disk).f_bsize
    (tiny_disk / "filler").write_bytes(bytes(free - 8192))
    command = [sys.executable, "-P", str(PROGRAM), str(tiny_disk / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "disk-full: no space to write" in done.stderr
    assert not processes_of(tiny_disk)
