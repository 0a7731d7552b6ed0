"""What the benchmarks of reading promise, as a quiet machine would measure it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gather as gathering
from benchmarks import parsing
from benchmarks.exports import write_export
from infx.analysis.validity import judge
from infx.store import FILE, Store, gather
from tests.quiet_machine import quiet_s

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "command",
    [
        "python -m benchmarks.parsing --rounds 1 --requests 40",
        "python -m benchmarks.gather --repeats 1 --points 10 --requests 40",
    ],
)
def test_a_benchmark_tells_its_command(command: str) -> None:
    argv = [sys.executable, *command.split()[1:]]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(done.stdout)["command"] == command


@pytest.mark.alone
def test_an_export_becomes_figures_at_150_mb_a_second(tmp_path: Path) -> None:
    folder = write_export(tmp_path / "export", parsing.CONC, 4000)
    size_mb = (folder / "profile_export.jsonl").stat().st_size / 1e6
    rates = {name: size_mb / quiet_s(work) for name, work in parsing.arms(folder).items()}
    assert min(rates["records"], rates["figures"]) > parsing.AIM_MB_S > 2 * rates["json"]


@pytest.mark.alone
def test_a_run_is_gathered_in_ten_milliseconds_a_point(tmp_path: Path) -> None:
    plan = gathering.planned(tmp_path, 100, 100)
    run = gathering.write_run(tmp_path, plan, 100)
    with Store(tmp_path / FILE) as store:
        took_s = quiet_s(lambda: gather(store, run, judge), rounds=3)
        assert {point.status.state for point in store.points(run.name)} == {"ok"}
    assert took_s < 100 * gathering.AIM_S / 1000
