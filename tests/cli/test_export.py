"""infx export: from a matrix, a saved plan or a run to recipes of srt-slurm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from infx.launch.runs import create_run, open_store
from infx.plan.saved import write_plan
from tests.cli.commands import ROOT, as_json, here
from tests.launch.srt import bench, stub_srtctl
from tests.store import tiny_plans

MATRIX = "minimaxm3-h200-vllm"


def test_a_matrix_becomes_recipes(tmp_path: Path) -> None:
    done = here("export", "--format", "srt", MATRIX, "-o", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = as_json(done)
    assert told["schema"] == "infx.export/1"
    recipes = told["data"]["recipes"]
    page = (ROOT / "docs/srt.md").read_text()
    assert recipes[0]["file"] in page  # the file that the page submits
    for recipe in recipes:
        content = yaml.safe_load((tmp_path / "out" / recipe["file"]).read_text())
        stub_srtctl.check(content)
        assert content["resources"] == {"gpu_type": "h200", "gpus_per_node": 8}
        assert content["slurm"]["partition"] == "main"


def test_people_are_told_what_was_written_and_what_was_not(tmp_path: Path) -> None:
    done = here("export", MATRIX, "-o", tmp_path)
    assert done.returncode == 0
    assert "RECIPE" in done.stdout
    assert "evaluations, which are left out" in done.stderr
    assert "submit one with srtctl apply -f FILE" in done.stderr


def test_engines_that_srt_lacks_are_findings(tmp_path: Path) -> None:
    done = here("export", "quickstart", "-o", tmp_path, "--json")
    assert done.returncode == 1
    told = as_json(done)
    assert not told["ok"]
    assert told["data"]["recipes"] == []
    assert {finding["code"] for finding in told["diagnostics"]} == {"srt-unsupported"}


def test_a_plan_without_a_recipe_names_the_next_step(tmp_path: Path) -> None:
    write_plan(replace(tiny_plans.plan(), jobs=()), tmp_path / "plan.json")
    done = here("export", tmp_path / "plan.json", "-o", tmp_path / "out")
    assert done.returncode == 5, done.stderr
    assert "no recipe: infx plan" in done.stderr
    assert "srtctl apply" not in done.stderr


@pytest.mark.parametrize("words", [("nope",), (MATRIX, "--format", "docker")])
def test_what_cannot_be_exported(words: tuple[str, ...], tmp_path: Path) -> None:
    assert here("export", *words, "-o", tmp_path).returncode == 2


def test_a_run_is_exported_by_its_name_and_a_plan_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, results = tmp_path / "project", tmp_path / "results"
    (project / "configs").mkdir(parents=True)
    clusters = "far: {executor: srt, hardware: h200, gpus-per-node: 8, srt: {client: me/c:1}}\n"
    (project / "configs" / "clusters.yaml").write_text(clusters)
    monkeypatch.chdir(project)
    plan = tiny_plans.plan(bench.job(0))
    with open_store(results) as store:
        run = create_run(store, results, plan, source="x", project=project, executor="far")
    for source in (run.run_id, "last", str(Path(run.folder) / "plan.json")):
        out = tmp_path / "out"
        done = here("export", source, "-o", out, "--results", results)
        assert done.returncode == 0, done.stderr
        [file] = out.glob("*.yaml")
        assert yaml.safe_load(file.read_text())["benchmark"]["container_image"] == "me/c:1"
        file.unlink()
