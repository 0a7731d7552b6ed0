"""An attempt is one's own: the first to come has it, everybody else keeps their hands off."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.job.claim import FILE, TAKEN, Claim, abandon, abandon_script, holder, take
from tests.job.conftest import PROGRAM
from tests.job.jobs import arm, names, point, write_job

JOB = Claim(by="job", scheduler_id="12_3", host="node1", pid=7, started_s=1.5)

SHELLS = [shell for shell in ("/bin/dash", "/bin/bash") if Path(shell).exists()]


def test_the_first_has_it(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    assert take(tmp_path, JOB)
    assert not take(tmp_path, Claim(by="job", scheduler_id="13"))
    assert holder(tmp_path) == JOB
    assert str(JOB) == "job 12_3 (process 7 on node1) has this attempt"


def test_what_a_job_has_cannot_be_given_up(tmp_path: Path) -> None:
    take(tmp_path, JOB)
    assert not abandon(tmp_path)
    assert holder(tmp_path) == JOB


def test_given_up_once_is_given_up(tmp_path: Path) -> None:
    assert abandon(tmp_path)
    assert abandon(tmp_path)
    assert not take(tmp_path, JOB)
    assert str(holder(tmp_path)) == "infx gave this attempt up"


def test_a_claim_that_is_still_written_is_a_jobs(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    assert not abandon(tmp_path)
    assert str(holder(tmp_path)) == "another execution has this attempt"


def test_nobody_has_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a1").write_text("")
    assert holder(tmp_path / "a1") is None


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as caught:
        take(tmp_path / "none", JOB)
    assert caught.value.code == "results-unwritable"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_says_what_the_function_says(shell: str, tmp_path: Path) -> None:
    def given_up(folder: Path) -> bool:
        script = abandon_script(str(folder))
        done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
        assert not done.stdout + done.stderr or not folder.exists()
        return done.returncode == 0

    free, taken, gone = (tmp_path / f"it's {name}" for name in ("free", "taken", "gone"))
    free.mkdir()
    taken.mkdir()
    take(taken, JOB)
    assert given_up(free)
    assert given_up(free)
    assert abandon(free)
    assert not take(free, JOB)
    assert not given_up(taken)
    assert holder(taken) == JOB
    assert not given_up(gone)


def _race(folder: str, number: int) -> bool:
    return abandon(Path(folder)) if number % 2 else take(Path(folder), JOB)


def test_of_many_at_once_one_side_wins(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(6) as pool:
        for number in range(20):
            folder = tmp_path / str(number)
            folder.mkdir()
            told = pool.starmap(_race, [(str(folder), n) for n in range(6)])
            jobs, givers = told[::2], told[1::2]
            assert sum(jobs) == (0 if any(givers) else 1)


@pytest.mark.parametrize("other", [JOB, Claim(by="infx")])
def test_the_job_touches_nothing_of_another(other: Claim, tmp_path: Path) -> None:
    write_job(tmp_path, point(arm(options={"fault": "none"})))
    take(tmp_path, other)
    command = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == TAKEN
    assert done.stderr == f"infx: nothing was run: {other}\n"
    assert names(tmp_path) == [FILE, "job.json"]
    assert holder(tmp_path) == other
