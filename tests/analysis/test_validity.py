from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.analysis.validity import Limits, Verdict, judge, judge_folder
from infx.domain.codes import CODES
from infx.domain.findings import Finding
from infx.domain.point import FixedLengths
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.analysis.made_exports import BASE_NS, closed_loop, row, shared, write_run
from tests.report.sample_runs import LLAMA, MINI, evaluation, point, record, score

EXPORTS = "data/aiperf_exports"


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings if finding.level == "error"]


@pytest.mark.parametrize("cell", [1, 2, 4])
def test_real_good_runs_are_valid(cell: int) -> None:
    verdict = judge_folder(shared(f"{EXPORTS}/real_smollm2/concurrency_{cell}"))
    assert str(verdict.status) == "ok"
    assert verdict.findings == ()
    assert verdict.measurement is not None


@pytest.mark.parametrize(
    ("folder", "code", "words"),
    [
        ("fail_half", "errors", "7 of 12 requests failed (58.3 %), limit 5 %"),
        ("dur_cancel", "cancelled-in-flight", "4 of 12 requests were cut in flight (33.3 %)"),
        ("sig_int", "interrupted-run", "after 4 of 200 requests"),
        ("fail_trunc", "osl-mismatch", "4 of 4 outputs are not 8 tokens long (mean 3)"),
        ("ds_weka_scn", "unsafe-scenario", "unsafe_override"),
    ],
)
def test_real_bad_runs_are_invalid_each_by_its_code(folder: str, code: str, words: str) -> None:
    verdict = judge_folder(shared(f"{EXPORTS}/{folder}"))
    assert (verdict.status.state, verdict.status.code) == ("invalid", code)
    assert words in verdict.status.sentence


def test_all_rules_that_fail_are_listed() -> None:
    verdict = judge_folder(shared(f"{EXPORTS}/sig_int"))
    assert codes(verdict) == ["interrupted-run", "incomplete-run", "requests-missing"]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, []),
        ({"is_complete": False}, ["incomplete-run"]),
        ({"was_cancelled": True}, ["interrupted-run"]),
        ({"requests": 12}, ["requests-missing"]),
        ({"conc": 4}, ["concurrency-off"]),
        ({"conc": 1}, ["concurrency-off"]),
        ({"conc": 10}, []),  # all sent at once: nothing to judge
        ({"osl": 9}, ["osl-mismatch"]),
        ({"completed_request_count": {"avg": 99}}, ["stale-export"]),
        ({"requests": None, "duration_s": 5.0, "cancelled": None}, ["cancelled-in-flight"]),
        ({"requests": None, "duration_s": 5.0, "cancelled": 1}, ["cancelled-in-flight"]),
        ({"cancelled": None}, []),
        ({"metadata": {"submission_valid": True}}, []),
    ],
)
def test_rules_on_made_runs(tmp_path: Path, parts: dict[str, Any], expected: list[str]) -> None:
    assert codes(judge_folder(write_run(tmp_path, closed_loop(2, 5), **parts))) == expected


def test_a_few_errors_or_cuts_are_a_warning(tmp_path: Path) -> None:
    failed = row(2000, 100, error={"type": "TimeoutError"})
    rows = [*closed_loop(2, 20), failed]
    verdict = judge_folder(
        write_run(tmp_path, rows, requests=None, duration_s=3.0, cancelled=1, conc=2)
    )
    assert str(verdict.status) == "ok"
    levels = [(f.code, f.level) for f in verdict.findings]
    assert levels == [("errors", "warning"), ("cancelled-in-flight", "warning")]


def test_nothing_succeeded_comes_before_the_missing_summary(tmp_path: Path) -> None:
    rows = [row(i * 10, 5, error={"type": "ClientConnectorError"}) for i in range(3)]
    folder = write_run(tmp_path, rows)
    (folder / "profile_export_aiperf.json").unlink()
    verdict = judge_folder(folder)
    assert verdict.status.code == "no-requests"
    assert "3 ClientConnectorError" in verdict.status.sentence
    assert "no-export" in codes(verdict)


def test_an_empty_run(tmp_path: Path) -> None:
    assert judge_folder(write_run(tmp_path, [])).status.code == "no-requests"


def test_missing_parts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", closed_loop(2, 5))
    (folder / "profile_export.jsonl").unlink()
    assert judge_folder(folder).status.code == "no-export"
    folder = write_run(tmp_path / "b", closed_loop(2, 5))
    (folder / "profile_export_aiperf.json").write_text('{"was_cancelled": fal')
    assert judge_folder(folder).status.code in ("truncated-export", "unreadable-export")


def test_a_missing_metric_and_nan(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", closed_loop(2, 5, time_to_first_token=...))
    assert codes(judge_folder(folder)) == ["metric-missing"]
    folder = write_run(tmp_path / "b", closed_loop(2, 5, request_latency=None))
    assert codes(judge_folder(folder)) == ["not-a-number"]


def test_times_that_cannot_be(tmp_path: Path) -> None:
    rows = closed_loop(2, 5)
    rows[0]["metadata"]["request_end_ns"] -= 500_000_000
    assert "clock-skew" in codes(judge_folder(write_run(tmp_path, rows)))


def test_limits_are_the_callers(tmp_path: Path) -> None:
    folder = write_run(tmp_path, closed_loop(2, 5), cancelled=1, duration_s=1.0, requests=None)
    assert judge_folder(folder).status.code == "cancelled-in-flight"
    assert judge_folder(folder, Limits(cancelled_share=0.2)).status.state == "ok"


# Our own points: compared with the plan and with what the engine told.


def ours(run_dir: Path, entry: str = MINI, **parts: Any) -> PointRecord:
    """A measured point of two lanes with ten requests of 8 tokens, its export under ``run_dir``."""
    made = record(point(entry, 2, 4), Status("measured"), counters=steady())
    workload = FixedLengths(isl=16, osl=8, requests=10)
    attempt = replace(made.attempt, started_s=BASE_NS / 1e9 - 5, ended_s=BASE_NS / 1e9 + 60)
    made = replace(
        made,
        point=replace(made.point, workload=workload),
        attempt=attempt,
        artifacts={"aiperf": "job/aiperf"},
    )
    write_run(run_dir / "job/aiperf", closed_loop(2, 5))
    return replace(made, **parts)


def steady(**parts: Any) -> EngineCounters:
    return replace(EngineCounters(acceptance_length=2.78, verify_steps=400, preemptions=0), **parts)


def test_a_measured_point_becomes_ok(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path), tmp_path)
    assert str(judged.status) == "ok"
    assert judged.measurement
    assert judged.measurement.requests.ok == 10


def test_only_measured_points_are_judged(tmp_path: Path) -> None:
    failed = ours(tmp_path, status=Status("failed", "server-died"))
    assert judge(failed, tmp_path) is failed


def test_a_point_without_its_export(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path, artifacts={"aiperf": "elsewhere"}), tmp_path)
    assert str(judged.status) == "invalid:no-export"


def test_the_plan_decides_what_was_asked(tmp_path: Path) -> None:
    made = ours(tmp_path)
    more = replace(made.point, workload=FixedLengths(isl=16, osl=8, requests=20))
    assert judge(replace(made, point=more), tmp_path).status.code == "requests-missing"


def test_an_export_of_an_earlier_attempt(tmp_path: Path) -> None:
    made = ours(tmp_path)
    late = replace(made.attempt, started_s=BASE_NS / 1e9 + 3600, ended_s=0.0)
    judged = judge(replace(made, attempt=late), tmp_path)
    assert judged.status.code == "stale-export"
    assert "3600" in judged.status.sentence


def test_an_answer_after_the_attempt_ended(tmp_path: Path) -> None:
    made = ours(tmp_path)
    early = replace(made.attempt, ended_s=BASE_NS / 1e9 - 10)
    assert judge(replace(made, attempt=early), tmp_path).status.code == "clock-skew"


@pytest.mark.parametrize(
    ("seen", "steps", "code"),
    [
        (2.78, 400, ""),
        (2.80, 400, ""),  # within 1 %
        (2.85, 400, ""),  # 4σ of the law over 400 steps is 0.083
        (2.88, 400, "acceptance-off"),
        (2.82, 100_000, "acceptance-off"),  # many steps: 1 % is the limit
        (2.41, 4, ""),  # four steps say nothing
        (None, None, "acceptance-off"),
    ],
)
def test_acceptance(tmp_path: Path, seen: float | None, steps: int | None, code: str) -> None:
    counters = steady(acceptance_length=seen, verify_steps=steps)
    assert judge(ours(tmp_path, counters=counters), tmp_path).status.code == code


def test_real_acceptance_is_not_compared(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path, LLAMA, counters=steady(acceptance_length=1.0)), tmp_path)
    assert str(judged.status) == "ok"


def test_preemptions(tmp_path: Path) -> None:
    assert judge(ours(tmp_path, counters=steady(preemptions=2)), tmp_path).status.state == "ok"
    judged = judge(ours(tmp_path, counters=steady(preemptions=3)), tmp_path)
    assert judged.status.code == "preemption-storm"


@pytest.mark.parametrize(
    ("coverage", "code"), [(0.95, ""), (0.5, "mono-coverage"), (None, "mono-coverage")]
)
def test_mono_must_serve(tmp_path: Path, coverage: float | None, code: str) -> None:
    made = ours(tmp_path, counters=steady(mono_coverage=coverage))
    axes = replace(made.point.arm.axes, mono="on")
    claimed = replace(made.point, arm=replace(made.point.arm, axes=axes))
    assert judge(replace(made, point=claimed), tmp_path).status.code == code


@pytest.mark.parametrize(
    ("server", "code"),
    [
        ({"max-num-seqs": 4, "k": 3}, ""),
        ({"max_num_seqs": 8}, "config-differs"),
        ({"capture-sizes": [1, 2, 3, 4]}, ""),
        ({"capture-sizes": [1, 2]}, "config-differs"),
        ({"kv-cache-dtype": "fp32"}, ""),  # planned auto
        ({"conc": 7, "unknown": 1}, ""),
    ],
)
def test_the_running_server_is_the_planned_one(
    tmp_path: Path, server: dict[str, Any], code: str
) -> None:
    made = ours(tmp_path)
    told = replace(made.provenance, server=server)
    assert judge(replace(made, provenance=told), tmp_path).status.code == code


def test_what_the_job_found_counts(tmp_path: Path) -> None:
    found = Finding("config-differs", "error", "dtype is bf16, planned fp32")
    judged = judge(ours(tmp_path, findings=(found,)), tmp_path)
    assert str(judged.status) == "invalid:config-differs"


def test_evaluations(tmp_path: Path) -> None:
    made = record(evaluation(LLAMA, 0.9), Status("measured"))
    assert judge(made, tmp_path).status.code == "no-requests"
    scored = replace(made, score=score(LLAMA, {"strict-match": 0.0}, 6, 0.9, 0.0))
    assert judge(scored, tmp_path).status.state == "ok"  # below its bar is a gate, not a fault


def test_every_code_of_a_verdict_is_listed_as_invalid() -> None:
    said = re.compile(r'(?:Finding|_error|MeasurementError)\(\s*"([a-z-]+)"')
    folder = Path(__file__).parents[2] / "infx/analysis"
    used = {code for path in folder.glob("*.py") for code in said.findall(path.read_text())}
    assert len(used) > 15
    assert {CODES[code].family for code in used} == {"invalid"}
