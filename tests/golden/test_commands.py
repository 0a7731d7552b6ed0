"""`infx golden` with infx's own engine; random weights accept next to nothing: lengths of 1.0x."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import yaml

from infx.cli.golden_driving import _here
from infx.config.library import Library
from infx.config.project import Project
from infx.domain.findings import Where
from infx.golden.curve import read_curve
from tests.cli.commands import INFX, as_json, environment, infx
from tests.engine.running_engine import Running, start
from tests.job.processes import processes_of

pytestmark = pytest.mark.slow

SMALL = ["--count", "4", "--conc", "2", "--shots", "0", "--output-len", "12"]
COLLECT = ["golden", "collect", "random", "--method", "eagle3", "--thinking", "off"]
RECIPE = """
framework: infx
model: {name: minimaxm3-mini, weights: "random:0", tokenizer: engine}
hardware: [cpu]
options: {threads: 1, num-blocks: 256}
chat-template: true
start-limit-s: 120
"""
NAME = "minimaxm3-mini_eagle3"


@pytest.fixture(autouse=True)
def recipe(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "random.yaml").write_text(RECIPE)


def test_a_recorded_matrix_is_found_by_its_name_where_its_path_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _here(("configs/quickstart.yaml", "gone/other.yaml")) == (
        "quickstart",
        "gone/other.yaml",
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/quickstart.yaml").write_text("")
    assert _here(("configs/quickstart.yaml",)) == ("configs/quickstart.yaml",)


def logs(folder: Path, k: int) -> Path:
    return folder / "results" / "golden" / "random" / f"k{k}"


def test_two_k_collected_checked_and_refuted(tmp_path: Path) -> None:
    done = infx(*COLLECT, *SMALL, "--k", "1,3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "golden_al" / f"{NAME}.yaml"
    library = Library(Project.find(tmp_path))
    curves = library.golden(NAME, Where("x"))
    library.report.check()
    assert curves
    assert [*curves["off"]] == [1, 3]
    assert all(1 <= length < 1.3 for length in curves["off"].values())
    assert yaml.safe_load(path.read_text())["minimaxm3-mini"]["thinking_off"] == curves["off"]
    for k in (1, 3):
        assert f'--num-speculative-tokens", "{k}' in " ".join(
            json.dumps(json.loads((logs(tmp_path, k) / "server.json").read_text())["argv"]).split()
        )
    holds = infx("golden", "check", NAME, "--k", "3", "--json", cwd=tmp_path)
    assert holds.returncode == 0, holds.stderr
    (verdict,) = as_json(holds)["data"]["verdicts"]
    assert (verdict["k"], verdict["holds"]) == (3, True)
    path.write_text(path.read_text().replace(f"1: {curves['off'][1]:.2f}", "1: 1.90"))
    refuted = infx("golden", "check", NAME, "--k", "1", cwd=tmp_path)
    assert refuted.returncode == 1, refuted.stderr
    assert "golden-differs" in refuted.stderr
    assert not processes_of(tmp_path)


def test_an_interrupted_collection_goes_on(tmp_path: Path) -> None:
    words = [*COLLECT, *SMALL, "--k", "1-2", "-o", "golden_al/a.yaml"]
    record = tmp_path / "golden_al" / "a.measured.json"
    process = subprocess.Popen(
        [*INFX, *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not (logs(tmp_path, 2) / "server.json").exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "the same command measures the rest" in told
    assert not processes_of(tmp_path)
    first = read_curve(record)
    assert first
    assert [*first.values["off"]] == [1]
    done = infx(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "K=1" not in done.stderr
    whole = read_curve(record)
    assert whole
    assert whole.values["off"][1] == first.values["off"][1]
    assert [*whole.values["off"]] == [1, 2]
    again = infx(*words, cwd=tmp_path)
    assert again.returncode == 0
    assert "starts" not in again.stderr


@pytest.mark.alone
def test_an_interruption_does_not_wait_for_answers(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*INFX, *COLLECT, *SMALL, "--k", "1"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    for line in process.stderr:
        if "2 batches" in line:
            break
    for engine in psutil.Process(process.pid).children(recursive=True):
        if "infx.engine" in engine.cmdline() and not engine.children():  # not its guard
            engine.suspend()
    began_s = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert time.monotonic() - began_s < 9  # a server has 10 s when nobody waits
    assert not processes_of(tmp_path)
    assert not (tmp_path / "golden_al").exists()


def test_an_engine_that_dies_keeps_what_is_measured(tmp_path: Path) -> None:
    words = [*COLLECT, "--k", "1-2", "-o", "a.yaml", "--count", "4", "--conc", "2", "--shots", "0"]
    process = subprocess.Popen(
        [*INFX, *words, "--output-len", "100"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    for line in process.stderr:
        if "K=2 thinking off, 2 batches" in line:
            break
    for engine in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it died with the one before
            if "infx.engine" in engine.cmdline():
                engine.kill()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 4, told
    assert "server-died" in told
    kept = read_curve(tmp_path / "a.measured.json")
    assert kept
    assert [*kept.values["off"]] == [1]


def test_thinking_is_refused_by_name(tmp_path: Path) -> None:
    words = [w for w in COLLECT if w not in ("--thinking", "off")]
    done = infx(*words, *SMALL, "--k", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert "thinking-unsupported" in done.stderr
    assert "thinking on" in done.stderr


@pytest.fixture
def synthetic() -> Running:
    return start(
        *("--speculative-method", "eagle3", "--num-speculative-tokens", "2"),
        *("--synthetic-acceptance-length", "2.0"),
    )


def test_a_running_server_is_asked_first(tmp_path: Path, synthetic: Running) -> None:
    try:
        done = infx("golden", "collect", "--url", synthetic.url, *SMALL, cwd=tmp_path)
    finally:
        synthetic.process.terminate()
        synthetic.process.wait(30)
    assert done.returncode == 4
    assert "acceptance-mode" in done.stderr
    assert not (tmp_path / "golden_al").exists()
