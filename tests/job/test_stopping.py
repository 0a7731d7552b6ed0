"""TERM, Ctrl-C, a time limit, kill -9: records where they can be, never a process left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.job.jobs import arm, events, point, records, write_job
from tests.job.processes import processes_of, wait_until

pytestmark = pytest.mark.slow

Start = Callable[[], "subprocess.Popen[bytes]"]


def measuring(folder: Path) -> bool:
    return (
        any(event["event"] == "phase" for event in events(folder))
        if (folder / "events.jsonl").exists()
        else False
    )


def requests_run(artifacts: Path) -> bool:
    log = artifacts / "aiperf.log"
    return log.exists() and "Phase profiling (profiling) started" in log.read_text()


@pytest.fixture
def job(tmp_path: Path, start_job: Start) -> subprocess.Popen[bytes]:
    """A job with two points whose client is running."""
    broken = arm(options={"fault": "slow"})
    write_job(tmp_path, *(point(broken, conc=conc, requests=400) for conc in (1, 2)))
    process = start_job()
    assert wait_until(lambda: measuring(tmp_path), 30)
    assert wait_until(lambda: any(map(requests_run, tmp_path.glob("points/*/aiperf"))), 60)
    return process


@pytest.fixture
def starting(tmp_path: Path, start_job: Start) -> subprocess.Popen[bytes]:
    """A job whose client has begun to start its services."""
    write_job(tmp_path, point(arm(options={"fault": "slow"}), requests=400))
    process = start_job()
    assert wait_until(lambda: len(processes_of(tmp_path)) > 6, 60)
    return process


def test_term_while_measuring(tmp_path: Path, job: subprocess.Popen[bytes]) -> None:
    job.send_signal(signal.SIGTERM)
    assert job.wait(40) == 143
    found = records(tmp_path)
    assert [record.status.state for record in found] == ["cancelled", "cancelled"]
    measured = next(record for record in found if "aiperf" in record.artifacts)
    log = (tmp_path / measured.artifacts["aiperf"] / "aiperf.log").read_text()
    assert "Graceful shutdown requested (signal 2)" in log
    assert not processes_of(tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_while_the_server_starts(
    number: signal.Signals, code: int, tmp_path: Path, start_job: Start
) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})))
    process = start_job()
    assert wait_until((tmp_path / "server.log").exists, 20)
    process.send_signal(number)
    process.send_signal(number)  # an impatient second one changes nothing
    assert process.wait(30) == code
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled"]
    assert events(tmp_path)[-1]["event"] == "point-ended"
    assert not processes_of(tmp_path)


def test_kill_9_leaves_no_process(tmp_path: Path, starting: subprocess.Popen[bytes]) -> None:
    os.kill(starting.pid, signal.SIGKILL)
    starting.wait()
    assert wait_until(lambda: not processes_of(tmp_path), 5)
    assert records(tmp_path) == []


def test_the_time_limit(tmp_path: Path, start_job: Start) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})), time_limit_s=2)
    assert start_job().wait(30) == 0
    status = records(tmp_path)[0].status
    assert str(status) == "failed:time-limit"
    assert status.sentence == "the job passed its limit of 2 s"
    assert not processes_of(tmp_path)
