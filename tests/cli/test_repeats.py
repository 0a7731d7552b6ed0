"""Repeats, arms in turn and a point measured again, through the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import STAND_IN, as_json, here, infx

MATRIX = """\
tiny:
  model-prefix: minimaxm3
  precision: mxfp4
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  scenarios:
    - workload: {isl: 64, osl: 8, requests: 20, warmup-requests: 1}
      axes: {conc: 1, k: 0, mono: [off, on]}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "configs").mkdir()
    (folder / "configs" / "tiny.yaml").write_text(MATRIX)
    return folder


def run_of(project: Path, *run: str) -> dict[str, Any]:
    return as_json(here("status", *run, "--results", project / "results", "--json"))["data"]


def test_a_plan_shows_what_is_repeated_and_what_it_costs(project: Path, monkeypatch) -> None:
    monkeypatch.chdir(project)
    once = as_json(here("plan", "tiny", "--json"))["data"]
    data = as_json(here("plan", "tiny", "--repeats", 3, "--json"))["data"]
    assert (data["candidates"], data["counts"]) == (once["candidates"], once["counts"])
    assert data["cost"]["points"] == 3 * once["cost"]["points"]
    assert [job["repeat"] for job in data["jobs"]] == [1, 1, 2, 2, 3, 3]
    assert [len(point["job_ids"]) for point in data["points"]] == [3, 3]
    told = here("plan", "tiny", "--interleave", "mono").stdout.splitlines()
    assert (
        "in turn on one allocation: tiny-c1-mono-off, tiny-c1-mono-on, tiny-c1-mono-on-r2"
        in (told[-2])
    )
    assert told[-1].startswith("4 jobs, 4 measurements of 2 points, about ")


def test_what_cannot_be_is_refused_with_the_next_step(project: Path, monkeypatch) -> None:
    monkeypatch.chdir(project)
    done = here("sweep", "tiny", "--interleave", "tp")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no two servers of the plan differ in it alone" in done.stderr
    assert "its values there: 1" in done.stderr
    here("plan", "tiny", "--repeats", 2, "-o", "plan.json")
    done = here("sweep", "plan.json", "--repeats", 2)
    assert "plan.json is run as it is" in done.stderr


@pytest.mark.slow
def test_a_saved_plan_is_swept_in_turn_and_its_points_have_names(project: Path, tmp_path: Path):
    saved = tmp_path / "plan.json"
    assert infx("plan", "tiny", "--interleave", "mono", "-o", saved, cwd=project).returncode == 0
    results = project / "stand-in"
    done = infx("sweep", saved, "--results", results, program=STAND_IN, cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("4 of 4 measurements ok")
    told = here("status", "last", "--results", results).stdout
    names = [line.split()[0] for line in told.splitlines() if line.startswith("tiny-")]
    assert [name.split("-")[3] for name in names] == ["off", "on", "on", "off"]
    assert [name.endswith("-r2") for name in names] == [False, False, True, True]
    log = here("logs", "last", names[2], "--results", results, "--json")
    assert "mono-on-r2-" in as_json(log)["data"]["file"]


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_arms_of_the_mini_engine_take_turns_and_a_point_is_measured_again(project: Path) -> None:
    """Real servers, real clients: five engine starts."""
    done = infx("sweep", "tiny", "--interleave", "mono", cwd=project, limit_s=600)
    assert done.returncode == 0, done.stderr
    data = run_of(project, "last")
    assert [(p["repeat"], p["status"]["state"]) for p in data["points"]] == [
        (1, "ok"),
        (1, "ok"),
        (2, "ok"),
        (2, "ok"),
    ]
    assert [a["repeat"] for a in data["attempts"]] == [1, 1, 2, 2]
    began = [attempt["started_s"] for attempt in data["attempts"]]
    assert began == sorted(began)
    compared = here("compare", "--axis", "mono", "--results", project / "results", "--json")
    assert len(as_json(compared)["data"]["points"]) == 1
    label = data["points"][0]["label"]
    again = infx("repro", label, "--margin", 90, "--json", cwd=project, limit_s=600)
    told = as_json(again)["data"]
    assert again.returncode == (0 if told["verdict"] == "reproduced" else 1), again.stderr
    assert told["point"] == label
    assert {figure["old"]["runs"] for figure in told["figures"]} == {2}
    assert {figure["new"]["runs"] for figure in told["figures"]} == {1}
    assert len(told["figures"]) == 5
    assert run_of(project)["runs"][0]["source"].startswith(f"infx repro {label} --run ")
