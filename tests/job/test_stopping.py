"""TERM, Ctrl-C, a time limit, kill -9: records where they can be, never a process left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from infx.config.sites import Container
from infx.job.result import Result, damage, read_result
from infx.job.spec import Site
from tests.job.jobs import arm, events, point, records, write_job
from tests.job.processes import processes_of, wait_until

pytestmark = pytest.mark.slow

IMAGE: dict[str, Any] = {"image": "owner/engine:1", "options": {"fault": "none"}}

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


def measured_job(folder: Path, start_job: Start, fault: str) -> subprocess.Popen[bytes]:
    """Start a job with two points and return it when its client is running."""
    broken = arm(options={"fault": fault})
    write_job(folder, *(point(broken, conc=conc, requests=400) for conc in (1, 2)))
    process = start_job()
    assert wait_until(lambda: measuring(folder), 60)
    assert wait_until(lambda: any(map(requests_run, folder.glob("points/*/aiperf"))), 120)
    return process


@pytest.fixture
def job(tmp_path: Path, start_job: Start) -> subprocess.Popen[bytes]:
    """A job with two points whose client is running."""
    return measured_job(tmp_path, start_job, "slow")


@pytest.fixture
def starting(tmp_path: Path, start_job: Start) -> subprocess.Popen[bytes]:
    """A job whose client has begun to start its services."""
    write_job(tmp_path, point(arm(options={"fault": "slow"}), requests=400))
    process = start_job()
    assert wait_until(lambda: len(processes_of(tmp_path)) > 6, 60)
    return process


def ended_as(folder: Path, status: str) -> Result:
    """Check result.json: its status, its points as in their records, its evidence as on disk."""
    result = read_result(folder)
    assert result is not None
    assert result.status == status
    found = records(folder)
    assert result.points == {record.point.label: str(record.status) for record in found}
    assert damage(folder, result) == []
    return result


def to_all(job: subprocess.Popen[bytes], *, lead_s: float) -> None:
    """TERM to every process of a job as scancel sends it, to the job itself ``lead_s`` later."""
    for process in psutil.Process(job.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    time.sleep(lead_s)
    job.send_signal(signal.SIGTERM)


def test_term_while_measuring(tmp_path: Path, job: subprocess.Popen[bytes]) -> None:
    job.send_signal(signal.SIGTERM)
    assert job.wait(40) == 143
    found = records(tmp_path)
    assert [record.status.state for record in found] == ["cancelled", "cancelled"]
    measured = next(record for record in found if "aiperf" in record.artifacts)
    log = (tmp_path / measured.artifacts["aiperf"] / "aiperf.log").read_text()
    assert "Graceful shutdown requested (signal 2)" in log
    assert not processes_of(tmp_path)
    result = ended_as(tmp_path, "cancelled")
    exports = f"points/{measured.point.label}/aiperf/profile_export.jsonl"
    assert exports in [told.path for told in result.manifest]


def test_records_are_written_before_a_stubborn_server_ends(
    tmp_path: Path, start_job: Start
) -> None:
    job = measured_job(tmp_path, start_job, "slow-and-deaf")
    job.send_signal(signal.SIGTERM)
    assert wait_until(lambda: len(records(tmp_path)) == 2, 20)
    assert [p for p in processes_of(tmp_path) if "slow-and-deaf" in p.cmdline()]
    job.kill()  # as Slurm does after KillWait
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled", "cancelled"]
    assert wait_until(lambda: not processes_of(tmp_path), 10)


@pytest.mark.parametrize("lead_s", [0.0, 1.0])
def test_term_to_every_process_while_measuring(
    lead_s: float, tmp_path: Path, job: subprocess.Popen[bytes]
) -> None:
    to_all(job, lead_s=lead_s)
    assert job.wait(30) == 143
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled", "cancelled"]
    ended_as(tmp_path, "cancelled")
    assert not processes_of(tmp_path)


@pytest.mark.parametrize("lead_s", [0.0, 1.0])
def test_term_to_every_process_while_the_server_starts(
    lead_s: float, tmp_path: Path, start_job: Start
) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})))
    job = start_job()
    assert wait_until((tmp_path / "server.json").exists, 20)
    to_all(job, lead_s=lead_s)
    assert job.wait(30) == 143
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled"]
    ended_as(tmp_path, "cancelled")


@pytest.mark.parametrize("everybody", [False, True])
def test_term_while_an_image_is_imported(
    everybody: bool, tmp_path: Path, start_job: Start, importing: Site
) -> None:
    write_job(
        tmp_path, point(arm(image="owner/engine:1", options={"fault": "none"})), site=importing
    )
    job, images = start_job(), tmp_path / "images"
    assert wait_until(lambda: list(images.glob(".*.part")), 20)
    to_all(job, lead_s=0.5) if everybody else job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 143
    assert [str(record.status) for record in records(tmp_path)] == ["cancelled"]
    assert "phase" in [event["event"] for event in events(tmp_path)]
    ended_as(tmp_path, "cancelled")
    assert not list(images.glob(".*.part"))
    assert not processes_of(tmp_path)


@pytest.fixture
def importing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site that keeps images, whose enroot never ends."""
    monkeypatch.setenv("PATH", f"{Path(__file__).parent / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_ENROOT", "hangs")
    monkeypatch.setenv("FAKE_ENROOT_CALLS", str(tmp_path / "calls"))
    return Site(container=Container(runtime="pyxis", images=str(tmp_path / "images")))


def test_an_image_that_cannot_be_imported(
    tmp_path: Path, start_job: Start, importing: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ENROOT", "fails")
    write_job(
        tmp_path, point(arm(image="owner/engine:1", options={"fault": "none"})), site=importing
    )
    assert start_job().wait(30) == 3
    assert "returned error code: 401" in ended_as(tmp_path, "failed:image-import").sentence
    assert events(tmp_path)[-1]["status"] == "failed:image-import"


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
    ended_as(tmp_path, "cancelled")


def test_kill_9_leaves_no_process(tmp_path: Path, starting: subprocess.Popen[bytes]) -> None:
    os.kill(starting.pid, signal.SIGKILL)
    starting.wait()
    assert wait_until(lambda: not processes_of(tmp_path), 5)
    assert records(tmp_path) == []
    assert read_result(tmp_path) is None


def test_the_time_limit(tmp_path: Path, start_job: Start) -> None:
    write_job(tmp_path, point(arm(options={"fault": "silent"})), time_limit_s=2)
    assert start_job().wait(30) == 0
    status = records(tmp_path)[0].status
    assert str(status) == "failed:time-limit"
    assert status.sentence == "the job passed its limit of 2 s"
    assert not processes_of(tmp_path)
    assert ended_as(tmp_path, "failed:time-limit").sentence == status.sentence
