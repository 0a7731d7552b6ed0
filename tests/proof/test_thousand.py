"""A thousand jobs of one point, of a no-op engine: what infx itself costs, and costs the scheduler.

Figures on a quiet machine of two cores: submitted in 0.6 s, 54 MB; the jobs themselves take two
minutes. Two folders and a file for each job are most of a submit, and cost what the machine's disk
makes them cost: the test takes that off.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.launch.lab_fixture import Lab
from tests.launch.slurm import bench
from tests.launch.slurm.driven import ROOT
from tests.store.tiny_plans import job

pytestmark = pytest.mark.proof

JOBS = 1000


@pytest.fixture(scope="module")
def figures(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Drive the thousand once, in a process of its own."""
    results = tmp_path_factory.mktemp("thousand")
    bench.prepare(results, *[job(n, points=1, seconds=0) for n in range(JOBS)], jobs_at_once=16)
    program = Path(__file__).with_name("thousand.py")
    done = subprocess.run(
        [sys.executable, str(program), str(results), str(lab.conf)],
        cwd=ROOT,
        env=lab.environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(found)
    return found | {"results": str(results)}


def test_they_are_submitted_in_under_a_second(figures: dict[str, object]) -> None:
    [(launched, wall_s)] = figures["submits"]  # type: ignore[misc]
    assert launched == JOBS
    files_s: float = figures["files_s"]  # type: ignore[assignment]
    assert wall_s - files_s < 1.0, f"{wall_s:.2f} s, of which {files_s:.2f} s for files"


def test_all_are_gathered_and_none_ran_twice(figures: dict[str, object]) -> None:
    results = Path(str(figures["results"]))
    assert Counter(bench.states(results)) == {"ok": JOBS}
    assert Counter(bench.measured(results).values()) == {1: JOBS}
    assert len(list(results.glob("runs/*/batches/*"))) == 1  # one array


def test_the_scheduler_is_asked_every_ten_seconds_at_most(figures: dict[str, object]) -> None:
    asked_s: list[float] = figures["asked_s"]  # type: ignore[assignment]
    waits_s = [later - earlier for earlier, later in pairwise(asked_s)]
    assert waits_s
    assert min(waits_s) >= 10


def test_infx_stays_small(figures: dict[str, object]) -> None:
    assert figures["peak_mb"] < 150  # type: ignore[operator]
