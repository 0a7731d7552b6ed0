"""`infx sweep --detach` and `infx ci wait` on a real Slurm, whose jobs go on by themselves."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.commands import as_json
from tests.cli.test_on_slurm import hear, launch, on, project, status
from tests.launch.lab_fixture import Lab, until

__all__ = ["project"]

pytestmark = pytest.mark.slow


def detach(project: Path, lab: Lab, *words: str, **extra: str) -> Path:
    """Let a run of three points go; return its folder."""
    began = time.monotonic()
    done = on(project, lab, "sweep", "m", "--on", "tiny", "--detach", *words, **extra)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 30
    return project / "results/runs" / done.stdout.strip()


def queue(lab: Lab) -> list[str]:
    return lab.run("squeue -h -r -o %i").split()


def measured(folder: Path) -> Counter[str]:
    return Counter((folder / "measured.txt").read_text().split())


def test_a_detached_run_is_waited_for_in_turns(project: Path, lab: Lab):
    """Its canaries go at once; waits that come and go drive the rest, and nothing runs twice."""
    gate = project / "gate"
    folder = detach(project, lab, STAND_IN_GATE=str(gate))
    assert status(project, lab)["state"] == "detached"
    assert len(queue(lab)) == 2  # the canary of each of two entries
    not_yet = on(project, lab, "ci", "wait", "--for", "3s", "--json")
    assert not_yet.returncode == 6, not_yet.stderr
    assert as_json(not_yet)["data"]["exit_code"] == 6
    for number, code in ((signal.SIGTERM, 6), (signal.SIGINT, 6), (signal.SIGKILL, -9)):
        (project / "told.txt").unlink(missing_ok=True)
        waiter = launch(project, lab, "ci", "wait", folder.name)
        hear(project, "followed again")
        time.sleep(1)
        waiter.send_signal(number)
        assert waiter.wait(30) == code, (project / "told.txt").read_text()
        assert len(queue(lab)) == 2
    gate.touch()
    done = on(project, lab, "ci", "wait", folder.name)
    assert done.returncode == 4, done.stderr  # no export of aiperf, so none is valid
    assert "0 of 3 points ok, 3 invalid" in done.stdout
    assert str(folder / "report.html") in done.stdout
    assert list(measured(folder).values()) == [1] * 3
    assert [a["number"] for a in status(project, lab)["attempts"]] == [1] * 3
    assert not queue(lab)
    again = on(project, lab, "ci", "wait")
    assert (again.returncode, again.stdout) == (4, done.stdout)


def test_a_canary_that_fails_before_anybody_waits_stops_its_entry(project: Path, lab: Lab):
    detach(project, lab, "--entry", "smol", STAND_IN="fail")
    until(lambda: not queue(lab), 60, lambda: "its canary goes on")
    done = on(project, lab, "ci", "wait", "--json")
    assert done.returncode == 4, done.stderr
    codes = Counter(point["status"]["code"] for point in as_json(done)["data"]["points"])
    assert codes == {"server-died": 1, "canary-failed": 1}


def test_two_waits_take_turns_and_a_cancel_ends_both(project: Path, lab: Lab):
    folder = detach(project, lab, "--no-canary", STAND_IN="hang")
    assert len(queue(lab)) == 3
    first = launch(project, lab, "ci", "wait", folder.name)
    hear(project, "followed again")
    second = launch(project, lab, "ci", "wait", folder.name)
    hear(project, f"is driven by pid {first.pid}")
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 6
    hear(project, "Ctrl-C ends the wait only; infx cancel stops the jobs")
    stopped = on(project, lab, "cancel", folder.name)
    assert stopped.returncode == 0, stopped.stderr
    # 130 where it drove already; else the cancel stopped the jobs itself, and a wait reports them.
    assert second.wait(60) in (130, 4)
    assert not queue(lab)
    assert {p["status"]["state"] for p in status(project, lab)["points"]} == {"cancelled"}


def test_a_run_that_was_brought_elsewhere_is_followed_where_its_jobs_write(
    project: Path, lab: Lab, tmp_path_factory: pytest.TempPathFactory
):
    """The next runner has a folder of its own; the first one's is on a disk that both share."""
    gate, place = project / "gate", tmp_path_factory.mktemp("place")
    folder = detach(project, lab, "--no-canary", STAND_IN_GATE=str(gate))
    other = tmp_path_factory.mktemp("other") / "project"
    shutil.copytree(project, other, ignore=shutil.ignore_patterns("results"))
    for where, words in ((project, ("push", place, folder.name)), (other, ("pull", place))):
        done = on(where, lab, "store", *words)
        assert done.returncode == 0, done.stderr
    not_yet = on(other, lab, "ci", "wait", "--for", "3s")
    assert not_yet.returncode == 6, not_yet.stderr
    gate.touch()
    done = on(other, lab, "ci", "wait", folder.name)
    assert done.returncode == 4, done.stderr
    assert "3 invalid" in done.stdout
    assert [a["number"] for a in status(other, lab)["attempts"]] == [1] * 3
    assert list(measured(folder).values()) == [1] * 3  # of the stand-in: where it writes
    pushed = on(other, lab, "store", "push", place, folder.name)
    assert pushed.returncode == 0, pushed.stderr
    pulled = on(project, lab, "store", "pull", place)
    assert pulled.returncode == 0, pulled.stderr
    assert on(project, lab, "ci", "wait").returncode == 4  # it has ended here as well
