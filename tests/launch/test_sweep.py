"""Whole runs with the local executor and stand-in jobs: real processes, real signals."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from infx.domain.errors import EmptyPlanError, InfraError, UsageError
from infx.domain.plan import Job
from infx.domain.status import OK, PENDING, Status
from infx.launch.runs import check_space, create_run, open_store, to_measure
from infx.launch.stop import CANCEL_FILE
from infx.plan.saved import write_plan
from infx.store import FILE, Store
from tests.launch.drive import drive, measured
from tests.store.tiny_plans import job, plan, stands

DRIVE = [sys.executable, "-m", "tests.launch.drive"]
ROOT = Path(__file__).parents[2]


def prepare(results: Path, *jobs: Job) -> None:
    results.mkdir(exist_ok=True)
    write_plan(plan(*jobs), results / "plan.json")


def states(results: Path) -> list[str]:
    with Store(results / FILE) as store:
        [run] = store.runs()
        return [str(row.status) for row in store.points(run.run_id)]


def run_state(results: Path) -> str:
    with Store(results / FILE) as store:
        return store.runs()[0].state


def start(results: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DRIVE, str(results)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def fork(results: Path) -> int:
    """Drive in a process of its own that starts in no time: for tests that start many."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if drive(results) else 130)
        finally:
            os._exit(1)
    return child


def wait_for(results: Path, event: str, seconds: float = 15) -> int:
    """Wait until a job said ``event``; return the process id of the running job."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        logs = results.glob("runs/*/jobs/*/a*/events.jsonl")
        if any(event in log.read_text() for log in logs):
            with Store(results / FILE) as store:
                [run] = store.runs()
                [open_] = store.attempts(run.run_id, open_only=True)
                if open_.scheduler_id:
                    return int(open_.scheduler_id)
        time.sleep(0.02)
    raise AssertionError(f"no {event} in {seconds} s")


def gone(pid: int, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_every_point_is_measured_once_and_kept(tmp_path: Path):
    prepare(tmp_path, job(0), job(1, points=1))
    assert drive(tmp_path)
    assert states(tmp_path) == ["ok", "ok", "ok"]
    assert run_state(tmp_path) == "ended"
    assert set(measured(tmp_path).values()) == {1}
    with Store(tmp_path / FILE) as store:
        [before] = store.runs()
    assert drive(tmp_path)  # nothing is left
    assert set(measured(tmp_path).values()) == {1}
    with Store(tmp_path / FILE) as store:
        assert store.runs() == [before]  # so a report still says how long it took


def test_a_failed_point_is_measured_again_only_when_asked(tmp_path: Path):
    prepare(tmp_path, job(0, behave="fail"))
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:server-died"] * 2
    assert drive(tmp_path)
    assert set(measured(tmp_path).values()) == {1}
    assert drive(tmp_path, retry_failed=True)
    assert set(measured(tmp_path).values()) == {2}


def test_who_only_waits_leaves_given_up_what_was_given_up(tmp_path: Path):
    prepare(tmp_path, job(0, behave="fail"), job(1), job(2, behave="crash", points=1))
    assert drive(tmp_path, fail_fast=True)
    given_up = ["failed:server-died"] * 2 + ["skipped:stopped-early"] * 3
    assert states(tmp_path) == given_up
    assert drive(tmp_path, waits=True)
    assert states(tmp_path) == given_up
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:server-died"] * 2 + ["ok"] * 2 + ["failed:job-lost"]
    assert drive(tmp_path, waits=True)  # which failed for good, of the machine's fault
    with Store(tmp_path / FILE) as store:
        assert len(store.attempts(store.runs()[0].run_id)) == 3


def test_a_job_that_dies_without_a_record_is_lost_and_the_next_one_runs(tmp_path: Path):
    prepare(tmp_path, job(0, behave="crash"), job(1))
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:job-lost"] * 2 + ["ok"] * 2
    with Store(tmp_path / FILE) as store:
        sentence = store.points(store.runs()[0].run_id)[0].status.sentence
    assert sentence == "the job ended (exit code -9): the server room is on fire"


def test_a_job_that_says_why_it_ended_is_believed(tmp_path: Path):
    prepare(tmp_path, job(0, behave="infra", points=1))
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:harness-missing"]


def test_a_program_that_cannot_start_is_an_infra_error(tmp_path: Path, monkeypatch):
    prepare(tmp_path, job(0))
    monkeypatch.setattr("tests.launch.drive.PROGRAM", ("/nowhere/python",))
    with pytest.raises(InfraError, match="/nowhere/python") as caught:
        drive(tmp_path)
    assert caught.value.code == "launch-failed"
    monkeypatch.undo()
    assert drive(tmp_path)
    assert states(tmp_path) == ["ok", "ok"]


def test_a_job_past_its_limit_is_stopped(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("infx.launch.local.OVERTIME_S", 0.3)
    prepare(tmp_path, job(0, behave="hang", limit_s=0), job(1, points=1))
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:time-limit"] * 2 + ["ok"]


def test_a_job_that_ignores_term_is_killed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("infx.launch.local.OVERTIME_S", 0.3)
    monkeypatch.setattr("infx.launch.local.STOP_S", 0.3)
    prepare(tmp_path, job(0, behave="deaf", limit_s=0, points=1))
    assert drive(tmp_path)
    assert states(tmp_path) == ["failed:time-limit"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_request_to_stop_ends_the_job_and_keeps_what_it_wrote(tmp_path: Path, number):
    prepare(tmp_path, job(0, behave="hang"), job(1))
    child = start(tmp_path)
    pid = wait_for(tmp_path, "point-started")
    child.send_signal(number)
    assert child.wait(10) == 130
    assert gone(pid)
    assert states(tmp_path) == ["cancelled"] * 2 + ["pending"] * 2
    assert run_state(tmp_path) == "cancelled"


def test_two_requests_kill_at_once(tmp_path: Path):
    prepare(tmp_path, job(0, behave="deaf"), job(1))
    child = start(tmp_path)
    pid = wait_for(tmp_path, "point-started")
    child.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert child.poll() is None  # the job is deaf, so the first request waits
    asked_s = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 130
    assert time.monotonic() - asked_s < 5  # the first request leaves it 60 s
    assert gone(pid)
    assert states(tmp_path) == ["cancelled"] * 2 + ["pending"] * 2


def test_a_cancel_file_stops_it_too(tmp_path: Path):
    prepare(tmp_path, job(0, behave="hang"))
    child = start(tmp_path)
    wait_for(tmp_path, "point-started")
    [run_dir] = (tmp_path / "runs").iterdir()
    (run_dir / CANCEL_FILE).touch()
    assert child.wait(10) == 130
    assert states(tmp_path) == ["cancelled"] * 2


def test_the_job_dies_with_a_killed_driver(tmp_path: Path):
    prepare(tmp_path, job(0, behave="hang"))
    child = start(tmp_path)
    pid = wait_for(tmp_path, "point-started")
    child.kill()
    child.wait()
    assert gone(pid)
    assert states(tmp_path) == ["pending"] * 2
    assert run_state(tmp_path) == "running"


def test_a_resumed_run_waits_for_the_job_of_the_killed_driver(tmp_path: Path):
    prepare(tmp_path, job(0, behave="deaf", points=1))
    child = start(tmp_path)
    pid = wait_for(tmp_path, "point-started")
    child.kill()
    child.wait()
    second = start(tmp_path)
    time.sleep(1)
    assert len(list(tmp_path.glob("runs/*/jobs/*/a*"))) == 1  # the old attempt is still there
    os.killpg(pid, signal.SIGKILL)
    assert gone(pid)
    deadline = time.monotonic() + 15
    while len(list(tmp_path.glob("runs/*/jobs/*/a*"))) == 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(list(tmp_path.glob("runs/*/jobs/*/a*"))) == 2
    wait_for_attempt(tmp_path, 2)
    second.send_signal(signal.SIGINT)
    time.sleep(0.2)
    second.send_signal(signal.SIGINT)
    assert second.wait(10) == 130


def wait_for_attempt(results: Path, number: int) -> None:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        if any("point-started" in log.read_text() for log in results.glob(_events(number))):
            return
        time.sleep(0.02)
    raise AssertionError(f"attempt {number} measures nothing")


def _events(number: int) -> str:
    return f"runs/*/jobs/*/a{number}/events.jsonl"


@pytest.mark.slow
def test_ten_kills_and_resumes_lose_and_repeat_nothing(tmp_path: Path):
    chance = random.Random(11)
    prepare(tmp_path, *[job(n, points=4, seconds=0.15) for n in range(4)])
    for _ in range(10):
        child = fork(tmp_path)
        time.sleep(chance.uniform(0.1, 0.6))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    _, code = os.waitpid(fork(tmp_path), 0)
    assert os.waitstatus_to_exitcode(code) == 0
    assert states(tmp_path) == ["ok"] * 16
    assert set(measured(tmp_path).values()) == {1}
    assert len(measured(tmp_path)) == 16
    assert len(list(tmp_path.glob("runs/*/jobs/*/a*"))) > 4  # the kills did hit running jobs


def test_a_resume_measures_only_the_points_that_are_missing(tmp_path: Path):
    prepare(tmp_path, job(0, points=3, seconds=0.3))
    child = start(tmp_path)
    wait_for(tmp_path, "point-ended")
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 130
    done = sum(measured(tmp_path).values())
    assert 1 <= done < 3
    assert drive(tmp_path)
    assert states(tmp_path) == ["ok"] * 3
    assert set(measured(tmp_path).values()) == {1}


def test_a_run_whose_folder_is_deleted_ends_as_a_failure_of_the_machine(tmp_path: Path):
    prepare(tmp_path, job(0, behave="hang"), job(1))
    child = start(tmp_path)
    pid = wait_for(tmp_path, "point-started")
    [run_dir] = (tmp_path / "runs").iterdir()
    shutil.rmtree(run_dir)
    os.killpg(pid, signal.SIGKILL)
    _, told = child.communicate(timeout=10)
    assert child.returncode == 1
    assert "InfraError: cannot write" in told
    assert "it is gone" in told
    with pytest.raises(UsageError, match="are gone") as caught:
        drive(tmp_path)
    assert caught.value.code == "not-a-run"


def test_an_empty_plan_makes_no_run(tmp_path: Path):
    from dataclasses import replace

    empty = replace(plan(job(0)), jobs=(), points=())
    with open_store(tmp_path) as store, pytest.raises(EmptyPlanError):
        create_run(store, tmp_path, empty, source="x", project=tmp_path, executor="local")
    assert not list((tmp_path / "runs").iterdir())


def test_too_little_space_is_said_with_the_number(tmp_path: Path):
    with pytest.raises(InfraError, match=r"MiB free; a sweep needs 1125899906842624 MiB"):
        check_space(tmp_path, 1 << 70)


def test_results_that_cannot_be_made_are_an_infra_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError) as caught:
        open_store(tmp_path / "file" / "results")
    assert caught.value.code == "results-unwritable"


def test_what_is_left_follows_the_plan(tmp_path: Path):
    whole = plan(job(0), job(1))
    statuses = dict(
        zip(
            stands(whole),
            [OK, Status("invalid", "errors"), Status("failed", "job-lost"), PENDING],
            strict=True,
        )
    )
    left = to_measure(whole, statuses)
    assert [[p.name for p in job.points] for job in left.values()] == [["tiny.s2.c1", "tiny.s2.c2"]]
    again = to_measure(whole, statuses, retry_failed=True)
    assert [len(job.points) for job in again.values()] == [1, 2]


def test_what_passed_its_limit_is_measured_again_under_a_larger_one_only(tmp_path: Path):
    whole = plan(job(0, points=1, limit_s=60))
    late = stands(whole, Status("failed", "time-limit", "the job passed its limit"))
    assert not to_measure(whole, late, retry_failed=True)
    assert not to_measure(whole, late, retry_failed=True, time_limit_s=60)
    [again] = to_measure(whole, late, time_limit_s=90).values()
    assert again.time_limit_s == 90
