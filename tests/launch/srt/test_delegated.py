"""Arms that srt-slurm launches of a recipe of its own: disaggregated, over several nodes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.plan import Job
from infx.domain.point import Delegated
from infx.launch.srt import apply
from infx.launch.srt.export import export
from infx.launch.srt.recipes import given_of, recipe_of
from infx.plan.make import make_plan
from tests.launch.lab_fixture import Lab
from tests.launch.srt import bench, stub_srtctl
from tests.launch.srt.test_faults import swept
from tests.store import tiny_plans

TEXT = Path(__file__).with_name("disagg.yaml").read_text()


def job(**fields: Any) -> Job:
    own = Delegated(text=TEXT, gpus=12, selector="override_deep", set={"environment.A": "1"})
    return bench.job(0, delegated=replace(own, **fields))


def rendered(given: apply.Given, folder: Path, *more: str) -> dict[str, Any]:
    """What srtctl makes of a recipe and the words beside it."""
    (folder / "srt.yaml").write_text(given.text)
    words = [f"{key}={value}" for key, value in given.set.items()]
    return stub_srtctl.selected(f"{folder}/srt.yaml{given.variant}", [*words, *more])


def test_the_recipe_is_its_own_but_for_name_image_and_client(tmp_path: Path) -> None:
    cluster = bench.cluster(client="me/c:1", models={"hf:me/tiny": "/models/tiny"})
    given = given_of(job(), cluster, "infx-1")
    assert given.text == TEXT
    assert given.variant == ":override_deep"
    assert given.set["benchmark.type"] == "custom"  # whatever its own was
    content = rendered(given, tmp_path)
    stub_srtctl.check(content)
    assert content["name"] == "infx-1"
    assert content["roles"]["decode"]["args"] == {"tensor-parallel-size": 4, "max-num-seqs": 512}
    assert content["environment"] == {"A": 1}
    assert content["model"]["path"] == "/models/tiny"
    assert content["model"]["container"].startswith("vllm/vllm-openai:sha256:")
    assert content["benchmark"]["concurrencies"] == [1, 2]
    assert content["benchmark"]["env"] == {"MODEL": "x"}
    assert content["benchmark"]["container_image"] == "me/c:1"
    own = recipe_of(bench.job(0), bench.cluster(), "x").content["benchmark"]["command"]
    command = content["benchmark"]["command"]
    assert f"\nmeasure {job().points[0].label} " in command
    assert len(command.splitlines()) == len(own.splitlines())  # whole, whatever YAML made of it


def test_the_command_survives_shell_and_yaml(tmp_path: Path) -> None:
    given = given_of(job(), bench.cluster(), "infx-1")
    script = apply.apply_script(
        bench.cluster().srt, given, folder="/f", file="srt.yaml", output="/f/srt", name="infx-1"
    )  # type: ignore[arg-type]
    words = shlex.split(script.splitlines()[-1])
    [said] = [word for word in words if word.startswith("benchmark.command=")]
    command = yaml.safe_load(said.partition("=")[2])
    assert command == rendered(given, tmp_path)["benchmark"]["command"]


def test_its_accelerators_divide_and_its_recipe_is_its_identity() -> None:
    plain, own = bench.job(0), job()
    assert own.points[0].gpus == 12
    assert plain.points[0].gpus == 1
    ids = {
        plain.arm.arm_id,
        own.arm.arm_id,
        job(selector="base").arm.arm_id,
        job(text="x").arm.arm_id,
    }
    assert len(ids) == 4


def test_the_node_does_not_bound_it() -> None:
    assert recipe_of(job(gpus=72), bench.cluster(), "x").sound


def test_exported_it_is_the_file_and_what_goes_with_it(tmp_path: Path) -> None:
    manifest = export(tiny_plans.plan(job()), {"far": bench.cluster()}, tmp_path)
    [recipe] = manifest.recipes
    assert (tmp_path / recipe.file).read_text() == TEXT
    assert recipe.variant == ":override_deep"
    assert recipe.set["model.container"].startswith("vllm/")


@pytest.mark.slow
def test_a_sweep_of_it(lab: Lab, tmp_path: Path) -> None:
    with swept(lab, tmp_path, job()) as sweep:
        sweep.finish()
        sweep.settled("ok", "ok")
        record = bench.records(tmp_path)[0]
        assert record.point.gpus == 12
        assert record.measurement
        seen = record.measurement
        assert seen.tput_tok_s_gpu * 12 == pytest.approx(seen.qps * (16 + 8), rel=0.2)


# From files to a plan

FILES = {
    "configs/clusters.yaml": (
        "nvl: {executor: srt, hardware: gb200, gpus-per-node: 4, srt: {}}\n"
        "own: {executor: slurm, hardware: gb200, gpus-per-node: 4, slurm: {partition: x}}\n"
    ),
    "recipes/disagg.yaml": (
        'framework: vllm\nmodel: {name: me/tiny, weights: "hf:me/tiny"}\nhardware: [gb200]\n'
        "srt: {recipe: srt/disagg.yaml:override_deep, gpus: 12}\n"
    ),
    "srt/disagg.yaml": TEXT,
    "configs/mine.yaml": (
        "disagg:\n  model-prefix: tiny\n  precision: fp8\n  framework: vllm\n"
        "  image: vllm/vllm-openai:v0.24.0\n  recipe: disagg\n  cluster: nvl\n  scenarios:\n"
        "    - workload: {isl: 64, osl: 8, requests: 4*conc}\n"
        "      axes: {conc: [4, 8]}\n"
    ),
}


def project(root: Path, **changed: str) -> Project:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        for old, new in changed.items():
            text = text.replace(f"cluster: {old}", f"cluster: {new}")
        (root / name).write_text(text)
    return Project(root, root)


def test_a_matrix_names_it_by_an_ordinary_recipe(tmp_path: Path) -> None:
    here = project(tmp_path)
    plan = make_plan(load_matrix([tmp_path / "configs/mine.yaml"], here))
    assert [point.gpus for point in plan.points] == [12, 12]
    assert plan.jobs[0].arm.delegated
    assert plan.jobs[0].arm.delegated.text == TEXT
    assert "srt/disagg.yaml" in plan.inputs


def test_only_srt_launches_it(tmp_path: Path) -> None:
    here = project(tmp_path, nvl="own")
    with pytest.raises(ConfigError, match="srt-only recipe 'disagg' is srt-slurm's to launch"):
        make_plan(load_matrix([tmp_path / "configs/mine.yaml"], here))
