"""Recipes of jobs: byte for byte against golden files, and by the rules of schema 2.

`INFX_RENEW_GOLDEN=1 pytest tests/launch/srt/test_recipe.py` writes tests/launch/srt/golden anew;
look at the difference before it is kept.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.plan import Job
from infx.domain.point import Agentic, FixedLengths
from infx.frameworks.srt import SrtRecipe
from infx.frameworks.srt_yaml import yaml_text
from infx.launch.srt.recipes import recipe_of
from tests.launch.srt import bench, stub_srtctl

GOLDEN = Path(__file__).parent / "golden"
NAME = "infx-20260102-030405-abcd-0123abcd-a1"
SYNTHETIC = Acceptance("synthetic", 2.5, "min-variance", "eagle3", "on", 3)


def served(framework: str, **fields: Any) -> Job:
    """A job at tp 4 whose arm sets what every engine has."""
    image = {"vllm": "vllm/vllm-openai:v0.24.0", "sglang": "lmsysorg/sglang:v0.5.9"}
    axes = Axes(conc=0, tp=4, max_num_seqs=16, max_model_len=9472)
    parts = {"axes": axes, "image": image.get(framework, "nvcr.io/x/y:1"), "image_digest": ""}
    return bench.job(0, framework=framework, **{**parts, **fields})


JOBS = {
    "vllm": served(
        "vllm",
        axes=Axes(
            conc=0, tp=8, max_num_seqs=16, prefix_caching=False, capture_sizes=(1, 2, 4, 8, 16), k=3
        ),
        method="eagle3",
        draft="me/draft",
        acceptance=SYNTHETIC,
        options={"gpu-memory-utilization": 0.9, "trust-remote-code": True},
    ),
    "sglang": served("sglang"),
    "atom": served("atom"),
    "trtllm": served("trtllm"),
}


def made(job: Job, **site: Any) -> SrtRecipe:
    return recipe_of(job, bench.cluster(**site), NAME)


def errors(job: Job, **site: Any) -> str:
    return "; ".join(f.sentence for f in made(job, **site).findings if f.level == "error")


@pytest.mark.parametrize("engine", JOBS)
def test_golden(engine: str) -> None:
    text = yaml_text(made(JOBS[engine]).content, "A comment.\nOf two lines.")
    file = GOLDEN / f"{engine}.yaml"
    if os.environ.get("INFX_RENEW_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("engine", JOBS)
def test_a_recipe_has_the_keys_of_schema_2_and_no_others(engine: str) -> None:
    recipe = made(JOBS[engine], client="me/client:1")
    assert recipe.sound
    content = yaml.safe_load(yaml_text(recipe.content))
    assert content == yaml.safe_load(yaml_text(content))
    stub_srtctl.check(content)


def test_the_rules_refuse_a_key_that_is_none() -> None:
    content = dict(made(JOBS["vllm"]).content)
    with pytest.raises(ValueError, match="unknown field sweep"):
        stub_srtctl.check(content | {"sweep": {}})
    with pytest.raises(ValueError, match="schema: 2"):
        stub_srtctl.check(content | {"schema": 1})


@pytest.mark.parametrize("engine", JOBS)
def test_srtctl_would_run_the_words_of_our_own_launch(engine: str) -> None:
    """Less what it sets itself: rendered back by its rules, every other word is there."""
    from infx.frameworks import get

    job, args = JOBS[engine], made(JOBS[engine]).content["roles"]["agg"]["args"]
    if engine == "trtllm":
        assert args["tensor_parallel_size"] == 4
        return
    words = rendered(args, underscores=engine == "atom")
    launch = get(engine).launch(job.arm, "0.0.0.0", 8000, Path("/logs"))
    own = [word for word in words if word not in launch.argv]
    assert own == []
    left = set(launch.argv[3:]) - set(words)
    assert not {word for word in left if word.startswith("--")} - SET_BY_SRTCTL


SET_BY_SRTCTL = {
    *("--host", "--port", "--model", "--model-path", "--server-port", "--tensor-parallel-size"),
}


def rendered(args: dict[str, Any], *, underscores: bool) -> list[str]:
    """The words that srtctl makes of ``args`` (facts.json, args)."""
    words = []
    for key, value in args.items():
        flag = f"--{key if underscores else key.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, list):
            words += [flag, *map(str, value)]
        elif value not in (False, None):
            words += [flag, str(value)]
    return words


def test_a_worker_gets_the_gpus_of_its_ranks_and_the_site_its_own_words() -> None:
    job = served("vllm", axes=Axes(conc=0, tp=4, pp=2))
    content = made(
        job,
        client="me/client:1",
        models={"hf:me/tiny": "/models/tiny"},
        containers={"vllm/vllm-openai:v0.24.0": "vllm"},
    ).content
    assert content["roles"]["agg"]["gpus"] == 8
    assert content["model"] == {"path": "/models/tiny", "container": "vllm", "precision": "bf16"}
    assert content["identity"]["model"] == {"repo": "me/tiny"}
    assert content["benchmark"]["container_image"] == "me/client:1"
    assert "--tokenizer /model " in content["benchmark"]["command"]


def test_a_digest_is_the_image() -> None:
    container = made(bench.job()).content["model"]["container"]
    assert container == f"vllm/vllm-openai:sha256:{'a' * 64}"


def test_the_limit_of_the_scheduler_is_later_than_the_jobs_own() -> None:
    assert made(bench.job()).content["slurm"] == {"time_limit": "00:15:00"}
    long = replace(bench.job(), time_limit_s=36_030)
    text = yaml_text(made(long).content)
    assert yaml.safe_load(text)["slurm"]["time_limit"] == "10:06:00"  # and no number in base 60


def test_sessions_are_replayed_as_in_our_own_jobs() -> None:
    load = Agentic(trace="semianalysis_cc_traces_weka_062126", duration_s=900)
    job = bench.job()
    points = tuple(replace(point, workload=load) for point in job.points)
    recipe = made(replace(job, points=points))
    command = recipe.content["benchmark"]["command"]
    assert "--scenario inferencex-agentx-mvp --public-dataset semianalysis" in command
    assert "export AIPERF_DATASET_CONFIGURATION_TIMEOUT=" in command
    assert not recipe.findings
    assert "extra_mount" not in recipe.content
    mine = replace(load, trace="/traces/mine", content="ab")
    points = tuple(replace(point, workload=mine) for point in job.points)
    content = made(replace(job, points=points)).content
    assert content["extra_mount"] == ["/traces/mine:/traces/mine"]


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (bench.job(framework="llamacpp"), "srt-slurm has no engine llamacpp: it has vllm, sglang"),
        (bench.job(image="pypi:vllm==0.24.0"), "pypi:vllm==0.24.0 is a package"),
        (served("vllm", axes=Axes(conc=0, tp=16)), "needs 16 accelerators of a node, which has 8"),
        (bench.job(accelerators=False), "a node of the cluster has no accelerators"),
        (served("atom", options={"kv-transfer-config": "{}"}), "srtctl gives atom no --kv-transf"),
        (served("vllm", options={"max-num-seqs": 4}), "--max-num-seqs stands twice"),
    ],
)
def test_what_a_recipe_cannot_say(job: Job, told: str) -> None:
    assert told in errors(job)
    assert not made(job).sound
    assert {finding.code for finding in made(job).findings} == {"srt-unsupported"}


def test_weights_that_only_a_package_has() -> None:
    job = bench.job()
    model = replace(job.arm.model, weights="package:x/y.gguf")
    job = replace(job, arm=replace(job.arm, model=model))
    assert "no path there" in errors(job)
    assert not errors(job, models={"package:x/y.gguf": "an-alias"})


def test_evaluations_are_left_out_and_said() -> None:
    job = bench.job()
    evaluation = replace(job.points[0], mode="evaluation")
    recipe = made(replace(job, points=(evaluation, job.points[1])))
    assert [point.conc for point in recipe.points] == [2]
    assert recipe.sound
    assert "1 of its points are evaluations" in str(recipe.findings)
    assert made(replace(job, points=(evaluation,))).content == {}


def test_a_prompt_is_sent_once() -> None:
    job = bench.job()
    load = FixedLengths(isl=16, osl=8, requests=4, warmup_requests=3)
    points = tuple(replace(point, workload=load) for point in job.points)
    command = made(replace(job, points=points)).content["benchmark"]["command"]
    assert "--request-count 4 --num-dataset-entries 7 --warmup-request-count 3" in command


@pytest.mark.parametrize("word", ["007", "1e5", "1_000", "inf", "nan", "0x10", "on", "1.50"])
def test_a_word_that_is_no_number_of_yaml_stays_one(word: str) -> None:
    job = served("vllm", options={"kv-cache-dtype": word})
    args = made(job).content["roles"]["agg"]["args"]
    assert args["kv-cache-dtype"] == word
    assert f"--kv-cache-dtype {word}" in " ".join(rendered(args, underscores=False))


def test_the_command_is_bash(tmp_path: Path) -> None:
    command = made(bench.job()).content["benchmark"]["command"]
    subprocess.run(["bash", "-n", "-c", command], check=True)


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.booleans() | st.none()))
def test_yaml_says_the_same_again(content: dict[str, Any]) -> None:
    assert yaml.safe_load(yaml_text(content)) == content
