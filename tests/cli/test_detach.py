"""Runs that nobody's terminal holds: `infx sweep --detach` and `infx ci wait` on this machine."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from infx.cli import detaching
from infx.config.project import Project
from infx.domain.plan import Reused
from infx.launch.local import LocalExecutor
from infx.plan.saved import read_plan
from infx.store import holder
from infx.store.layout import job_dir
from tests.cli.commands import ROOT, STAND_IN, as_json, environment, here, infx
from tests.launch.lab_fixture import until
from tests.store.machines import RUN, Machine
from tests.store.tiny_plans import plan as tiny

SMOL = ("quickstart", "--entry", "smol*")

pytestmark = pytest.mark.slow


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Path]:
    """A results folder; the driver of its run is gone after the test."""
    yield tmp_path
    for folder in tmp_path.glob("runs/*"):
        if pid := driver(folder):
            os.kill(pid, signal.SIGKILL)


def driver(folder: Path) -> int:
    """The process that drives a run; 0 when none does."""
    words = holder(folder).split()
    return int(words[1]) if words else 0


def detach(results: Path, *words: str, **extra: str) -> Path:
    """Begin a run and let go; return its folder."""
    done = infx("sweep", *SMOL, "--detach", "--results", results, *words, program=STAND_IN, **extra)
    assert done.returncode == 0, done.stderr
    return results / "runs" / done.stdout.strip()


def bereave(folder: Path) -> None:
    """Kill the driver of a run, and see it gone."""
    os.kill(driver(folder), signal.SIGKILL)
    until(lambda: not driver(folder), 20, lambda: "it drives on")


def wait(results: Path, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return infx("ci", "wait", *words, "--results", results, program=STAND_IN, **extra)


def waiting(results: Path, *words: str, **extra: str) -> subprocess.Popen[str]:
    """A waiter that has said whom it follows."""
    child = subprocess.Popen(
        [*STAND_IN, "ci", "wait", *words, "--results", str(results)],
        cwd=ROOT,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr
    told = child.stderr.readline()
    assert "is driven by pid" in told or "drives run" in told
    return child


def status(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = as_json(here("status", "last", "--results", results, "--json"))["data"]
    return found


def measured(folder: Path) -> Counter[str]:
    return Counter((folder / "measured.txt").read_text().split())


def test_a_detached_run_outlives_its_terminal_and_is_waited_for(results: Path):
    gate = results / "gate"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        command = [*STAND_IN, "sweep", *SMOL, "--detach", "--results", str(results)]
        os.execvpe(command[0], command, environment(STAND_IN_GATE=str(gate)))
    _, code = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(code) == 0
    [folder] = results.glob("runs/*")
    assert os.getsid(driver(folder)) == driver(folder)
    assert status(results)["state"] == "running"
    not_yet = wait(results, "--for", "1s", "--json")
    assert not_yet.returncode == 6, not_yet.stderr
    assert f"run {folder.name} has not ended yet" in not_yet.stderr
    assert as_json(not_yet)["data"]["exit_code"] == 6
    gate.touch()
    done = wait(results, folder.name)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 points ok" in done.stdout
    assert str(folder / "report.html") in done.stdout
    assert list(measured(folder).values()) == [1] * 4
    again = wait(results, "--json")  # of a run that ended before
    assert (again.returncode, as_json(again)["data"]["exit_code"]) == (0, 0)


def test_whatever_ends_the_wait_the_run_goes_on(results: Path):
    gate = results / "gate"
    folder = detach(results, STAND_IN_GATE=str(gate))
    by = driver(folder)
    waiters = {
        number: waiting(results) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
    }
    time.sleep(1)
    for number, waiter in waiters.items():
        waiter.send_signal(number)
        _, told = waiter.communicate(timeout=20)
        assert waiter.returncode == (-9 if number == signal.SIGKILL else 6), told
    assert driver(folder) == by
    gate.touch()
    done = wait(results)
    assert done.returncode == 0, done.stderr
    assert list(measured(folder).values()) == [1] * 4


def test_a_wait_begins_a_driver_where_the_first_was_killed_and_leaves_it_behind(results: Path):
    gate = results / "gate"
    folder = detach(results, STAND_IN_GATE=str(gate))
    bereave(folder)
    done = wait(results, "--for", "2s", STAND_IN_GATE=str(gate), RUNNER_TRACKING_ID="github_1")
    assert done.returncode == 6, done.stderr
    by = psutil.Process(driver(folder))
    assert "RUNNER_TRACKING_ID" not in by.environ()
    gate.touch()
    assert wait(results).returncode == 0
    assert list(measured(folder).values()) == [1] * 4


def test_a_driver_that_dies_is_told_of_and_the_next_begins_what_is_left(results: Path):
    folder = detach(results, STAND_IN="hang")
    bereave(folder)
    done = wait(results, STAND_IN="parricide")
    assert done.returncode == 3, done.stderr
    assert "driver-died" in done.stderr
    assert "exit code -9" in done.stderr
    assert str(folder / "driver.log") in done.stderr
    assert "launched" in (folder / "driver.log").read_text()
    # as of a runner that is gone:
    with sqlite3.connect(results / "store.sqlite") as db:
        db.execute("UPDATE runs SET host = 'gpu-17'")
    done = wait(results)
    assert (done.returncode, "was driven on gpu-17" in done.stderr) == (0, True), done.stderr
    assert list(measured(folder).values()) == [1] * 4


def test_what_a_driver_cannot_do_is_told_in_its_words(results: Path):
    folder = detach(results, STAND_IN="hang")
    bereave(folder)
    plan = read_plan(folder / "plan.json")
    job_dir(folder, plan.jobs[1]).touch()
    done = wait(results)
    assert done.returncode == 3, done.stderr
    assert "results-unwritable" in done.stderr


def test_a_cancelled_run_is_not_begun_again(results: Path):
    folder = detach(results, STAND_IN="hang")
    assert infx("cancel", "last", "--results", results).returncode == 0
    done = wait(results)
    assert done.returncode == 130, done.stderr
    assert f"infx resume {folder.name}" in done.stderr
    assert status(results)["state"] == "cancelled"


def test_a_wait_drives_the_run_as_it_was_asked(results: Path):
    folder = detach(results, "--fail-fast", "--no-canary", STAND_IN="hang")
    told = json.loads((folder / "run.json").read_text())
    assert (told["fail_fast"], told["canary"]) == (True, False)
    bereave(folder)
    done = wait(results, "--json", STAND_IN="fail")
    assert done.returncode == 4, done.stderr
    states = Counter(point["status"]["code"] for point in as_json(done)["data"]["points"])
    assert states["stopped-early"] == 3, states


def test_a_run_that_is_driven_here_is_followed_from_another_folder(
    results: Path, tmp_path_factory: pytest.TempPathFactory
):
    gate, place, other = results / "gate", results / "place", tmp_path_factory.mktemp("other")
    place.mkdir()
    folder = detach(results, STAND_IN_GATE=str(gate))
    assert infx("store", "push", place, folder.name, "--results", results).returncode == 0
    assert infx("store", "pull", place, "--results", other).returncode == 0
    by = driver(folder)
    not_yet = wait(other, "--for", "1s")
    assert (not_yet.returncode, f"pid {by} on" in not_yet.stderr) == (6, True), not_yet.stderr
    gate.touch()
    done = wait(other)
    assert done.returncode == 0, done.stderr
    assert list(measured(folder).values()) == [1] * 4


class Durable(LocalExecutor):
    """Stands for a scheduler that is asked for nothing."""

    durable = True


def test_a_run_that_ends_at_once_tells_its_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """All of it is reused: a script reads the name of the run from stdout all the same."""
    monkeypatch.setattr("infx.cli.driving.executor_of", lambda *_: Durable())
    with Machine(tmp_path) as one:
        one.whole()
        taken = tuple(Reused(point=point, run_id=RUN) for point in tiny().points)
        whole = replace(tiny(), points=(), jobs=(), reused=taken)
        project = Project.find(ROOT)
        assert detaching.start(whole, ["m"], project, one.results, as_json=False) == 0
        [_, run] = one.store.runs()
        assert capsys.readouterr().out == f"{run.run_id}\n"
        assert run.state == "ended"


def test_the_driver_is_this_very_infx():
    done = subprocess.run(
        [*detaching.PROGRAM, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == here("--version").stdout


def test_a_duration_is_spelt_out():
    for text in ("5", "5x", "h", "1h 30m", ""):
        done = here("ci", "wait", "--for", text)
        assert (done.returncode, "write 5h, 90m or 1h30m" in done.stderr) == (2, True), text
