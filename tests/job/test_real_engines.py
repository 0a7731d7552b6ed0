"""A whole job with nothing made up: the real server, the real aiperf, the real verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infx.analysis.validity import judge
from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.record import PointRecord
from tests.job.jobs import MINI, SMOLLM2, arm, events, point, records, write_job
from tests.job.processes import processes_of

pytestmark = pytest.mark.slow


def run(folder: Path) -> list[PointRecord]:
    command = [sys.executable, "-P", "-m", "infx.job", str(folder / "job.json")]
    subprocess.run(command, check=True, timeout=240)
    assert not processes_of(folder)
    return [judge(record, folder) for record in records(folder)]


def test_llamacpp(tmp_path: Path) -> None:
    server = arm("llamacpp", model=SMOLLM2, options={"parallel": 2, "ctx-size": 1024, "threads": 2})
    load = {"isl": 64, "osl": 8, "requests": 6, "warmup_requests": 2}
    write_job(tmp_path, point(server, conc=2, **load), time_limit_s=200)
    [record] = run(tmp_path)
    assert record.status.state == "ok", record.status
    assert record.measurement is not None
    assert record.measurement.requests.ok == 6
    assert record.measurement.isl.mean == 64  # as the server counts, chat template included
    assert record.measurement.osl.mean == 8
    assert record.counters is not None
    assert record.counters.peak_running == 2
    assert record.provenance.server["parallel"] == 2
    assert record.provenance.client_argv[:2] == ("aiperf", "profile")
    assert set(record.phases_s) == {"server-start", "client"}
    told = [event["event"] for event in events(tmp_path)]
    assert told[:3] == ["job-started", "server-starting", "server-ready"]
    assert told[-2:] == ["point-ended", "job-ended"]


def test_infx_with_synthetic_acceptance(tmp_path: Path) -> None:
    server = arm(
        "infx",
        model=MINI,
        method="eagle3",
        axes=Axes(conc=0, k=3, max_num_seqs=4, capture_sizes=(4, 8, 12, 16)),
        acceptance=Acceptance("synthetic", 2.78, k=3),
        options={"threads": 2, "num-blocks": 128},
        start_limit_s=60,
    )
    load = {"isl": 64, "osl": 16, "requests": 8, "warmup_requests": 2}
    points = [point(server, conc=2, **load), point(server, mode="evaluation")]
    write_job(tmp_path, *points, time_limit_s=200)
    evaluation, record = run(tmp_path)
    assert record.status.state == "ok", record.status
    assert record.counters is not None
    assert record.counters.acceptance_length == pytest.approx(2.78, abs=0.3)
    assert record.counters.verify_steps
    assert record.provenance.server["max_num_seqs"] == 4
    # The same server refuses the other mode: an evaluation needs real acceptance.
    assert str(evaluation.status) == "failed:acceptance-mode"


def test_infx_evaluation(tmp_path: Path) -> None:
    server = arm("infx", model=MINI, options={"threads": 2, "num-blocks": 512}, start_limit_s=60)
    write_job(tmp_path, point(server, mode="evaluation", max_tokens=8, limit=2), time_limit_s=200)
    [record] = run(tmp_path)
    assert record.status.state == "ok", record.status
    assert record.score is not None
    assert record.score.questions == 2
    assert (tmp_path / record.artifacts["lm-eval"] / "results.json").exists()
