"""A plan as a folder of recipes: stable names, a manifest that leads back, what cannot be said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import yaml

from infx.domain.serial import decode
from infx.launch.srt.export import MANIFEST, Manifest, export
from tests.launch.srt import bench, stub_srtctl
from tests.store import tiny_plans

CLUSTERS = {"far": bench.cluster(), "near": replace(bench.cluster(), name="near")}


def test_a_recipe_for_each_arm_and_the_way_back(tmp_path: Path) -> None:
    plan = tiny_plans.plan(bench.job(0), bench.job(1, points=3))
    manifest = export(plan, CLUSTERS, tmp_path / "out")
    written = decode((tmp_path / "out" / MANIFEST).read_bytes(), Manifest)
    assert written == manifest
    assert written.plan_id == plan.plan_id
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {MANIFEST, *(recipe.file for recipe in written.recipes)}
    told = {point.point_id for recipe in written.recipes for point in recipe.points}
    assert told == {point.point_id for point in plan.points}
    for recipe in written.recipes:
        assert recipe.file == f"vllm-{recipe.arm_id[:8]}.yaml"
        content = yaml.safe_load((tmp_path / "out" / recipe.file).read_text())
        stub_srtctl.check(content)
        assert content["name"] == f"infx-{recipe.file.removesuffix('.yaml')}"
        assert content["benchmark"]["concurrencies"] == [point.conc for point in recipe.points]
        for point in recipe.points:
            assert f"measure {point.label} " in content["benchmark"]["command"]


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path) -> None:
    plan = tiny_plans.plan(bench.job(0), bench.job(1))
    for name in ("a", "b"):
        export(plan, CLUSTERS, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_jobs_of_one_arm_are_one_recipe(tmp_path: Path) -> None:
    whole = bench.job(0)
    one, two = (replace(whole, job_id=f"{n}", points=(p,)) for n, p in enumerate(whole.points))
    manifest = export(tiny_plans.plan(one, two), CLUSTERS, tmp_path)
    [recipe] = manifest.recipes
    assert [point.conc for point in recipe.points] == [1, 2]


def test_one_arm_on_two_clusters_is_two_recipes(tmp_path: Path) -> None:
    near = replace(bench.job(0), cluster="near")
    manifest = export(tiny_plans.plan(bench.job(0), near), CLUSTERS, tmp_path)
    one, two = (recipe.file for recipe in manifest.recipes)
    assert two == one.replace(".yaml", "-near.yaml")


def test_what_cannot_be_said_is_a_finding_and_no_file(tmp_path: Path) -> None:
    plan = tiny_plans.plan(bench.job(0), bench.job(1, framework="llamacpp"))
    manifest = export(plan, CLUSTERS, tmp_path)
    [recipe] = manifest.recipes
    assert recipe.file.startswith("vllm-")
    assert {f.code for f in manifest.findings if f.level == "error"} == {"srt-unsupported"}
    assert len(list(tmp_path.glob("*.yaml"))) == 1
    told = json.loads((tmp_path / MANIFEST).read_text())["findings"]
    assert any("no engine llamacpp" in finding["sentence"] for finding in told)
