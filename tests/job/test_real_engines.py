"""A whole job with nothing made up: the real server, the real aiperf, the real verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from infx.analysis.validity import judge
from infx.domain.acceptance import Acceptance
from infx.domain.artifacts import RECORDS, SUMMARY
from infx.domain.axes import Axes
from infx.domain.point import FixedLengths
from infx.domain.record import PointRecord
from infx.job.spec import Site
from tests.job.jobs import MINI, SMOLLM2, arm, events, point, records, write_job
from tests.job.processes import processes_of

pytestmark = pytest.mark.slow


def run(*folders: Path) -> list[list[PointRecord]]:
    """Run the jobs of the folders side by side; return the judged records of each."""
    command = [sys.executable, "-P", "-m", "infx.job"]
    jobs = [subprocess.Popen([*command, str(folder / "job.json")]) for folder in folders]
    assert [job.wait(240) for job in jobs] == [0] * len(jobs)
    assert not any(map(processes_of, folders))
    return [[judge(record, folder) for record in records(folder)] for folder in folders]


def check_prompts(folder: Path, record: PointRecord) -> None:
    """Each prompt of the file was sent once, in order, warm-up and profiling apart."""
    artifacts = folder / record.artifacts["aiperf"]
    lines = (artifacts.parent / "prompts.jsonl").read_text().splitlines()
    made = [json.loads(line)["session_id"] for line in lines]
    assert len({json.loads(line)["text"] for line in lines}) == len(made)
    rows = (artifacts / RECORDS).read_text().splitlines()
    sent = sorted(
        (json.loads(row)["metadata"] for row in rows), key=lambda told: told["credit_issued_ns"]
    )
    assert [told["conversation_id"] for told in sent] == made
    for told in sent:
        assert told["conversation_id"].startswith(told["benchmark_phase"])
    said = json.loads((artifacts / SUMMARY).read_text())["input_config"]
    load = record.point.workload
    assert isinstance(load, FixedLengths)
    profiling = next(phase for phase in said["phases"] if phase["kind"] == "profiling")
    assert (profiling["concurrency"], profiling["requests"]) == (record.point.conc, load.requests)
    assert said["datasets"][0]["osl"]["mean"] == load.osl


def test_llamacpp(tmp_path: Path) -> None:
    """Its weights lie elsewhere on this site, which no record says."""
    model = replace(SMOLLM2, weights="hf:owner/smollm2")
    server = arm("llamacpp", model=model, options={"parallel": 2, "ctx-size": 1024, "threads": 2})
    load = {"isl": 64, "osl": 8, "requests": 4, "warmup_requests": 2}
    site = Site(models={"hf:owner/smollm2": SMOLLM2.weights})
    write_job(tmp_path, point(server, conc=2, **load), time_limit_s=200, site=site)
    [[record]] = run(tmp_path)
    assert record.point.arm == server
    assert record.status.state == "ok", record.status
    assert record.measurement is not None
    assert record.measurement.requests.ok == 4
    assert record.measurement.isl.mean == 64  # as the server counts, chat template included
    assert record.measurement.osl.mean == 8
    assert record.measurement.isl.std == 0
    check_prompts(tmp_path, record)
    assert record.counters is not None
    assert record.counters.peak_running == 2
    assert record.provenance.server["parallel"] == 2
    assert record.provenance.client_argv[:2] == ("aiperf", "profile")
    assert set(record.phases_s) == {"server-start", "client"}
    told = [event["event"] for event in events(tmp_path)]
    assert told[:3] == ["job-started", "server-starting", "server-ready"]
    assert told[-2:] == ["point-ended", "job-ended"]


SYNTHETIC = arm(
    "infx",
    model=MINI,
    method="eagle3",
    axes=Axes(conc=0, k=3, max_num_seqs=4, capture_sizes=(4, 8, 12, 16)),
    acceptance=Acceptance("synthetic", 2.78, k=3),
    options={"threads": 2, "num-blocks": 128},
    start_limit_s=60,
)
REAL = arm("infx", model=MINI, options={"threads": 2, "num-blocks": 512}, start_limit_s=60)


@pytest.fixture(scope="module")
def infx(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[PointRecord]]]:
    """Two jobs on infx's own engine: their folder, and the records of each."""
    folder = tmp_path_factory.mktemp("infx")
    load = {"isl": 64, "osl": 16, "requests": 8, "warmup_requests": 2}
    points = [point(SYNTHETIC, conc=2, **load), point(SYNTHETIC, mode="evaluation")]
    asked = point(REAL, mode="evaluation", max_tokens=8, limit=2, shots=1)
    write_job(folder / "synthetic", *points, time_limit_s=200)
    write_job(folder / "real", asked, time_limit_s=200)
    return folder, run(folder / "synthetic", folder / "real")


def test_infx_with_synthetic_acceptance(infx: tuple[Path, list[list[PointRecord]]]) -> None:
    folder, [[evaluation, record], _] = infx
    assert record.status.state == "ok", record.status
    check_prompts(folder / "synthetic", record)
    assert record.measurement is not None
    assert (record.measurement.isl.mean, record.measurement.isl.std) == (64, 0)
    assert record.measurement.osl_mismatches == 0
    assert record.counters is not None
    # No prompt repeats, and the template is shorter than a page of the cache.
    assert record.counters.prefix_cache_hit_share == 0
    assert record.counters.acceptance_length == pytest.approx(2.78, abs=0.3)
    assert record.counters.verify_steps
    assert record.provenance.server["max_num_seqs"] == 4
    # The same server refuses the other mode: an evaluation needs real acceptance.
    assert str(evaluation.status) == "failed:acceptance-mode"


def test_infx_evaluation(infx: tuple[Path, list[list[PointRecord]]]) -> None:
    folder, [_, [record]] = infx
    assert record.status.state == "ok", record.status
    assert record.score is not None
    assert record.score.questions == 2
    # Random weights never come to an end by themselves.
    assert (record.score.cut, record.score.max_tokens) == (2, 8)
    assert (folder / "real" / record.artifacts["lm-eval"] / "results.json").exists()
