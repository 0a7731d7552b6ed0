"""From exports to point.json, judged by infx's own rules."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.analysis.validity import judge
from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.plan import Job
from infx.domain.point import Agentic
from infx.domain.record import Attempt, PointRecord
from infx.frameworks import get
from infx.frameworks.vllm_server import INFO
from infx.launch.executor import Order
from infx.launch.srt import records
from infx.store import read_attempt
from tests.analysis import made_exports
from tests.launch.srt import bench

DRAFTS = "# TYPE c counter\nvllm:spec_decode_num_drafts_total {n}\n"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total {n}\n"


class Made:
    """An attempt whose job left what a test writes."""

    def __init__(self, folder: Path, job: Job) -> None:
        self.run_dir = folder / "runs" / "r1"
        attempt = Attempt(run_id="r1", job_id=job.job_id, number=1, unique_name="n", batch="n")
        self.order = Order(attempt=attempt, job=job, folder=self.run_dir / "jobs" / "j" / "a1")
        self.job = self.order.folder / "srt" / "7"
        self.logs = self.job / "logs"
        self.logs.mkdir(parents=True)

    def export(self, number: int, place: str = "", rows: int = 4, **parts: Any) -> Path:
        """Write an export of the point's asks; ``place`` is elsewhere below logs."""
        point = self.order.job.points[number]
        own = f"infx/{point.label}/aiperf"
        told = {k: parts.pop(k) for k in ("osl",) if k in parts}
        asked = {"conc": point.conc, "osl": 8, **parts}
        lines = made_exports.closed_loop(point.conc, rows, **told)
        return made_exports.write_run(self.logs / (place or own), lines, **asked)

    def gather(self) -> list[PointRecord]:
        attempt = records.ended(self.order.attempt, "7", "node3")
        self.measured = records.gather(self.order, self.job, attempt)
        records.refuse(self.order, attempt)
        found, faults = read_attempt(self.order.folder, self.run_dir, lambda record, _: record)
        assert not faults
        return found


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setattr(made_exports, "BASE_NS", time.time_ns() - 10**10)
    return Made(tmp_path, bench.job())


def test_each_export_becomes_the_record_of_its_point(made: Made) -> None:
    made.export(0)
    made.export(1)
    (made.logs / "workers").mkdir()
    (made.logs / "workers" / "n_agg_w0.out").write_text("x")
    one, two = made.gather()
    assert [str(r.status) for r in (one, two)] == ["measured", "measured"]
    assert one.attempt.scheduler_id == "7"
    assert one.attempt.node == "node3"
    assert one.attempt.ended_s > 0
    assert one.artifacts == {
        "aiperf": f"jobs/j/a1/srt/7/logs/infx/{one.point.label}/aiperf",
        "srt": "jobs/j/a1/srt/7",
        "server-log": "jobs/j/a1/srt/7/logs/workers/n_agg_w0.out",
    }
    judged = judge(one, made.run_dir)
    assert str(judged.status) == "ok"
    assert judged.measurement
    told = {f.code for f in judged.findings}
    assert told == {"srt-prompts", "config-untold", "preemptions-untold"}


def test_exports_of_others_are_known_by_what_they_say_not_by_their_names(made: Made) -> None:
    first = made.export(1, "artifacts/conc_1_osl_9999")  # a name that lies
    second = made.export(0, "artifacts/conc_2")
    made.export(0, "artifacts/other-lengths", osl=16)
    (made.logs / "broken").mkdir()
    (made.logs / "broken" / "profile_export_aiperf.json").write_text("{")
    found = {p.conc: f for p, f in records.matched(made.order.job.points, made.job)}
    assert found == {2: first, 1: second}


def test_a_point_does_not_take_the_export_of_another(made: Made) -> None:
    made.export(0)
    twin = replace(made.order.job.points[0], point_id="f" * 64, name="other")
    points = (twin, made.order.job.points[0])
    assert [p.name for p, _ in records.matched(points, made.job)] == ["tiny.s1.c1"]


def test_an_export_is_of_one_point_only(made: Made) -> None:
    made.export(0, "any/where")
    twin = replace(made.order.job.points[0], point_id="f" * 64, name="other")
    points = (twin, made.order.job.points[0])
    assert [p.name for p, _ in records.matched(points, made.job)] == ["other"]


def test_sessions_are_matched_by_concurrency(made: Made) -> None:
    load = Agentic(trace="semianalysis_cc_traces_weka_062126")
    point = replace(made.order.job.points[1], workload=load)
    made.export(0, "any/where")
    place = made.export(1, "any/other")
    assert records.matched((point,), made.job) == []  # fixed lengths are no sessions
    summary = json.loads((place / "profile_export_aiperf.json").read_text())
    summary["input_config"]["datasets"] = [{"type": "file", "format": "weka_trace"}]
    (place / "profile_export_aiperf.json").write_text(json.dumps(summary))
    assert records.matched((point,), made.job) == [(point, place)]


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"osl": 0}, "invalid:no-tokens"),  # success, and nothing was generated
        ({"was_cancelled": True}, "invalid:interrupted-run"),
        ({"is_complete": False}, "invalid:incomplete-run"),
        ({"requests": 99}, "ok"),  # what it asked itself: the plan decides
        ({"rows": 2}, "invalid:requests-missing"),
    ],
)
def test_what_may_not_count_is_judged_as_everywhere(
    made: Made, parts: dict[str, Any], status: str
) -> None:
    made.export(0, **parts)
    [record] = made.gather()
    assert str(judge(record, made.run_dir).status) == status


def test_requests_that_all_failed_leave_no_summary(made: Made) -> None:
    place = made.export(0)
    error = {"code": 500, "type": "HTTPError", "message": "dead"}
    rows = [made_exports.row(0, 5, error=error)]
    (place / "profile_export.jsonl").write_text(json.dumps(rows[0]) + "\n")
    (place / "profile_export_aiperf.json").unlink()
    [record] = made.gather()
    assert str(judge(record, made.run_dir).status) == "invalid:no-requests"


def test_evaluations_end_as_what_srt_cannot(made: Made) -> None:
    job = made.order.job
    points = (replace(job.points[0], mode="evaluation"), job.points[1])
    made.order = replace(made.order, job=replace(job, points=points))
    made.export(1)
    assert {r.point.conc: str(r.status) for r in made.gather()} == {
        1: "failed:srt-unsupported",
        2: "measured",
    }
    assert made.measured == {points[1].point_id}


# What the server said of itself


def synthetic(folder: Path) -> Made:
    acceptance = Acceptance("synthetic", 2.5, "min-variance", "g", "on", 3)
    axes = Axes(conc=0, k=3, max_num_seqs=8)
    job = bench.job(axes=axes, acceptance=acceptance, method="eagle3", draft="me/draft")
    return Made(folder, job)


def server(rates: list[float], seqs: int = 8) -> dict[str, Any]:
    drafting = {"rejection_sample_method": "synthetic", "num_speculative_tokens": 3}
    drafting["synthetic_acceptance_rates"] = rates
    return {
        "vllm_config": {
            "speculative_config": drafting,
            "scheduler_config": {"max_num_seqs": seqs},
            "parallel_config": {"tensor_parallel_size": 1},
        }
    }


def told(made: Made, page: object) -> None:
    number = get("vllm").pages.index(INFO)
    (made.logs / "infx" / "pages").mkdir(parents=True)
    (made.logs / "infx" / "pages" / f"{number}.json").write_text(json.dumps(page))


def test_acceptance_is_checked_with_the_server_and_read_back(tmp_path: Path) -> None:
    made = synthetic(tmp_path)
    told(made, server([1.0, 0.5, 0.0]))
    place = made.export(0).parent
    (place / "metrics-before.txt").write_text((DRAFTS + ACCEPTED).format(n=100))
    (place / "metrics-after.txt").write_text(DRAFTS.format(n=1100) + ACCEPTED.format(n=1600))
    [record] = made.gather()
    assert str(record.status) == "measured"
    assert record.counters
    assert record.counters.acceptance_length == 2.5
    assert record.provenance.server["max_num_seqs"] == 8


@pytest.mark.parametrize("page", [None, server([1.0, 0.9, 0.0]), {"vllm_config": {}}])
def test_a_server_with_another_acceptance_or_none_fails(tmp_path: Path, page: object) -> None:
    made = synthetic(tmp_path)
    if page:
        told(made, page)
    made.export(0)
    [record] = made.gather()
    assert str(record.status) == "failed:acceptance-mode"


def test_a_server_that_runs_otherwise_is_told(tmp_path: Path) -> None:
    made = synthetic(tmp_path)
    told(made, server([1.0, 0.5, 0.0], seqs=4))
    made.export(0)
    [record] = made.gather()
    judged = judge(record, made.run_dir)
    assert "config-differs" in {finding.code for finding in judged.findings}


def test_a_server_with_another_option_is_told(tmp_path: Path) -> None:
    made = synthetic(tmp_path)
    job = made.order.job
    points = tuple(
        replace(p, arm=replace(p.arm, options={"max_num_batched_tokens": 64})) for p in job.points
    )
    made.order = replace(made.order, job=replace(job, points=points))
    page = server([1.0, 0.5, 0.0])
    page["vllm_config"]["scheduler_config"]["max_num_batched_tokens"] = 32
    told(made, page)
    made.export(0)
    [record] = made.gather()
    assert [f.code for f in record.findings if f.level == "error"] == ["config-differs"]
