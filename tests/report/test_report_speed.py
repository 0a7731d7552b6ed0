"""`infx report` of 500 points as a whole process, as a quiet machine would time it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report as reporting
from tests.quiet_machine import COUNTED_S, cpu_s
from tests.report.many_points import many_plan, many_points, many_records, write_run

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def test_the_benchmark_tells_its_command() -> None:
    command = "python -m benchmarks.report --repeats 1 --points 10"
    argv = [sys.executable, *command.split()[1:]]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    told = json.loads(done.stdout)
    assert told["command"] == command
    assert set(told["process"]) == set(reporting.CASES)


@pytest.mark.alone
def test_five_hundred_points_are_reported_in_two_seconds(tmp_path: Path) -> None:
    points = many_points(500)
    write_run(tmp_path, points, many_records(points), many_plan(points), reporting.RUN)
    took_s = min(reporting.process_s(tmp_path, [reporting.RUN])[1] for _ in range(4))
    counted_s = min(cpu_s(lambda: sum(1 for _ in range(100_000))) for _ in range(10))
    assert took_s / max(1.0, counted_s / COUNTED_S) < reporting.AIM_S
    assert (tmp_path / "report.html").stat().st_size < 800_000
