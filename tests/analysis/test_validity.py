from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infx.analysis.validity import Limits, Verdict, judge, judge_folder
from infx.domain.codes import CODES
from infx.domain.findings import Finding
from infx.domain.point import FixedLengths
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.analysis.made_exports import BASE_NS, closed_loop, ramped, row, write_run
from tests.public_data import shared
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
        (
            "fail_trunc",
            "osl-mismatch",
            "4 of 4 outputs hold less than 50 % of the tokens that the server counted (mean 3",
        ),
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
        ({"conc": 11}, ["concurrency-off"]),  # fewer requests than lanes
        ({"osl": 9}, ["osl-mismatch"]),
        ({"completed_request_count": {"avg": 99}}, ["stale-export"]),
        ({"requests": None, "duration_s": 0.5, "cancelled": None}, ["cancelled-in-flight"]),
        ({"requests": None, "duration_s": 0.5, "cancelled": 1}, ["cancelled-in-flight"]),
        ({"requests": None, "duration_s": 0.55}, []),
        ({"requests": None, "duration_s": 0.56}, ["window-short"]),
        ({"requests": 10, "duration_s": 5.0}, []),  # ended by its requests, before its time
        (
            {"metadata": {"submission_valid": False, "submission_invalid_reasons": None}},
            ["unsafe-scenario"],
        ),
        ({"metadata": None}, []),
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
        write_run(tmp_path, rows, requests=None, duration_s=2.0, cancelled=1, conc=2)
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
    assert judge_folder(folder).status.code == "truncated-export"
    (folder / "profile_export_aiperf.json").write_text('{"was_cancelled": 7}')
    assert judge_folder(folder).status.code == "unreadable-export"
    (folder / "profile_export_aiperf.json").unlink()
    assert judge_folder(folder).status.code == "no-export"


PROFILING = {"kind": "profiling", "concurrency": 2, "requests": 10}
SYNTHETIC = {"type": "synthetic", "prompts": {"osl": {"mean": 8}}}


@pytest.mark.parametrize(
    "foreign",
    [
        None,
        [],
        {},
        {"loadgen": {"concurrency": 2, "request_count": 10}},
        {"phases": None, "datasets": [SYNTHETIC]},
        {"phases": PROFILING, "datasets": [SYNTHETIC]},
        {"phases": {"profiling": PROFILING}, "datasets": [SYNTHETIC]},
        {"phases": ["profiling"], "datasets": [SYNTHETIC]},
        {"phases": [PROFILING | {"concurrency": [2, 4]}], "datasets": [SYNTHETIC]},
        {"phases": [PROFILING, PROFILING], "datasets": [SYNTHETIC]},
        {"phases": [PROFILING], "datasets": None},
        {"phases": [PROFILING], "datasets": [{"type": "synthetic", "prompts": {"osl": 8}}]},
    ],
)
def test_an_export_of_another_schema_says_what_is_not_checked(
    tmp_path: Path, foreign: object
) -> None:
    verdict = judge_folder(write_run(tmp_path, closed_loop(2, 5), input_config=foreign))
    (found,) = verdict.findings
    assert (found.code, found.level, verdict.status.state) == ("asked-unknown", "warning", "ok")
    assert "what was asked is unknown" in found.sentence
    assert "not checked: the number of requests" in found.sentence
    (tmp_path / "logs/aiperf.log").unlink()
    verdict = judge_folder(tmp_path)
    assert verdict.status.code == "cancelled-in-flight"
    assert "may be timed without aiperf's log" in verdict.status.sentence


def test_numbers_of_another_type_are_read(tmp_path: Path) -> None:
    told = {"phases": [PROFILING | {"concurrency": 2.0}], "datasets": [SYNTHETIC]}
    assert judge_folder(write_run(tmp_path, closed_loop(2, 5), input_config=told)).findings == ()


def test_a_ramp_of_the_client_does_not_fail_a_good_run(tmp_path: Path) -> None:
    # 64 lanes of 100 ms requests, opened over 150 ms: three waves, a third of it ramp and drain.
    folder = write_run(tmp_path / "a", ramped(64, 192, 100, ramp_ms=150), conc=64)
    assert codes(judge_folder(folder)) == []
    folder = write_run(tmp_path / "b", ramped(40, 192, 100, ramp_ms=150), conc=64)
    assert codes(judge_folder(folder)) == ["concurrency-off"]


def test_fewer_requests_than_lanes_say_so(tmp_path: Path) -> None:
    verdict = judge_folder(write_run(tmp_path / "a", closed_loop(4, 1), conc=8))
    assert "4 requests were sent for 8 lanes" in verdict.status.sentence
    # Requests that were cut were sent.
    folder = write_run(tmp_path / "b", closed_loop(4, 1), conc=8, cancelled=4)
    assert "concurrency-off" not in codes(judge_folder(folder))


def test_a_cell_without_an_export_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "concurrency_4/logs").mkdir(parents=True)
    assert str(judge_folder(tmp_path / "concurrency_4").status) == "invalid:no-export"


def test_a_client_that_counts_otherwise_is_not_a_mismatch(tmp_path: Path) -> None:
    rows = closed_loop(2, 5, osl=6, usage_completion_tokens=8)
    assert codes(judge_folder(write_run(tmp_path, rows))) == []


def test_a_few_answers_without_their_text_are_a_warning(tmp_path: Path) -> None:
    rows = closed_loop(2, 15, usage_completion_tokens=8)
    rows[3]["metrics"]["output_sequence_length"]["value"] = 3
    verdict = judge_folder(write_run(tmp_path, rows))
    assert [(f.code, f.level) for f in verdict.findings] == [("osl-mismatch", "warning")]
    assert "1 of 30 outputs" in verdict.findings[0].sentence


def test_a_missing_metric_and_nan(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", closed_loop(2, 5, time_to_first_token=...))
    assert codes(judge_folder(folder)) == ["metric-missing"]
    folder = write_run(tmp_path / "b", closed_loop(2, 5, request_latency=None))
    assert codes(judge_folder(folder)) == ["not-a-number"]


def test_times_that_cannot_be(tmp_path: Path) -> None:
    rows = closed_loop(2, 5)
    rows[0]["metadata"]["request_end_ns"] -= 500_000_000
    assert "clock-skew" in codes(judge_folder(write_run(tmp_path, rows)))


@pytest.mark.parametrize(
    ("start_ns", "e2el_ms", "expected"),
    [
        (-1, 100.0, ["clock-skew"]),  # would make the window 57 years long
        (BASE_NS, 5000.0, ["clock-skew"]),
        (BASE_NS, 1e21, ["clock-skew"]),
        (BASE_NS, 1900.0, []),
        (BASE_NS - 9_000_000_000, 6500.0, []),  # a slow step between the last token and the end
    ],
)
def test_an_e2el_that_is_not_the_time_of_its_request(
    tmp_path: Path, start_ns: int, e2el_ms: float, expected: list[str]
) -> None:
    rows = closed_loop(2, 10)
    rows[0]["metadata"]["request_start_ns"] = start_ns
    rows[0]["metrics"]["request_latency"]["value"] = e2el_ms
    assert codes(judge_folder(write_run(tmp_path, rows))) == expected


def credited(order: list[int], step_ms: float) -> list[Any]:
    """A loop of one lane whose requests, numbered in this ``order``, became due every 100 ms; the
    clock was set by ``step_ms`` before the fifth."""
    rows = closed_loop(1, len(order))
    for number, made in zip(order, rows, strict=True):
        due_ms = 100 * number + (step_ms if number >= 5 else 0)
        made["metadata"]["credit_issued_ns"] = BASE_NS + int(due_ms * 1e6)
        made["metadata"]["session_num"] = number
    return rows


@pytest.mark.parametrize(
    ("order", "step_ms", "expected"),
    [
        ([*range(10)], 0, []),
        ([1, 0, 3, 2, *range(4, 10)], 0, []),  # answers come in another order
        ([*range(10)], -190, []),  # 90 ms before the last one: within 100 ms
        ([*range(10)], -210, ["clock-skew"]),
        ([*range(10)], 5000, []),  # a pause of the client looks the same
    ],
)
def test_a_clock_that_was_set_back(
    tmp_path: Path, order: list[int], step_ms: float, expected: list[str]
) -> None:
    rows = credited(order, step_ms)
    assert codes(judge_folder(write_run(tmp_path, rows, conc=1))) == expected


def test_a_clock_that_was_set_forward(tmp_path: Path) -> None:
    made = ours(tmp_path, phases_s={"client": 0.45})
    assert judge(made, tmp_path).status.state == "ok"  # a window of 0.5 s
    judged = judge(replace(made, phases_s={"client": 0.39}), tmp_path)
    assert judged.status.code == "clock-skew"
    assert "window is 0.5 s long, and the client ran 0.39 s" in judged.status.sentence


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_records_that_are_cut_anywhere_are_never_valid(tmp_path: Path, share: float) -> None:
    folder = write_run(tmp_path, closed_loop(2, 5))
    records = folder / "profile_export.jsonl"
    whole = records.read_bytes().rstrip(b"\n")
    records.write_bytes(whole[: int(share * len(whole))])
    assert judge_folder(folder).status.state == "invalid"
    records.write_bytes(whole)
    assert judge_folder(folder).status.state == "ok"


def test_nan_in_the_summary_is_not_a_cut_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path, closed_loop(2, 5), request_latency={"avg": float("nan")})
    assert judge_folder(folder).status.code == "not-a-number"


def test_limits_are_the_callers(tmp_path: Path) -> None:
    folder = write_run(tmp_path, closed_loop(2, 5), cancelled=1, duration_s=0.5, requests=None)
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


def test_preemptions_that_nobody_counts_are_not_none(tmp_path: Path) -> None:
    assert untold(tmp_path, counters=steady(preemptions=None)) == ["preemptions-untold"]
    assert untold(tmp_path, counters=None) == ["preemptions-untold"]
    assert untold(tmp_path, counters=steady()) == []
    assert untold(tmp_path, LLAMA, counters=EngineCounters()) == []  # it never preempts


def untold(tmp_path: Path, entry: str = MINI, **parts: Any) -> list[str]:
    """The warnings of a point that is ok, or would be but for its acceptance."""
    judged = judge(ours(tmp_path, entry, **parts), tmp_path)
    assert judged.status.code in ("", "acceptance-off")
    return [found.code for found in judged.findings if found.level == "warning"]


def test_the_warm_up_is_among_the_requests_that_were_preempted(tmp_path: Path) -> None:
    made = ours(tmp_path, counters=steady(preemptions=3))
    warmed = [row(-500, 100, phase="warmup")] * 5
    write_run(tmp_path / "job/aiperf", [*warmed, *closed_loop(2, 5)])
    assert judge(made, tmp_path).status.state == "ok"  # 3 of 15, and 3 of 10 without it


@pytest.mark.parametrize(("share", "level"), [(None, ""), (0.5, ""), (0.51, "warning")])
def test_a_warm_prefix_cache_is_told(tmp_path: Path, share: float | None, level: str) -> None:
    judged = judge(ours(tmp_path, counters=steady(prefix_cache_hit_share=share)), tmp_path)
    assert judged.status.state == "ok"
    told = [f for f in judged.findings if f.code == "prefix-cache-hits"]
    assert [f.level for f in told] == ([level] if level else [])
    assert all("chat template" in f.sentence and "51 %" in f.sentence for f in told)


def judged_mono(tmp_path: Path, value: str = "on", **counted: Any) -> PointRecord:
    """A point with mono whose server counted ``counted``."""
    made = ours(tmp_path, counters=steady(**counted))
    axes = replace(made.point.arm.axes, mono=value)
    claimed = replace(made.point, arm=replace(made.point.arm, axes=axes))
    return judge(replace(made, point=claimed), tmp_path)


@pytest.mark.parametrize(
    ("coverage", "share", "code"),
    [
        (1.0, 1.0, ""),
        (0.9, 0.01, ""),  # the share of all steps is the load's, no fault
        (0.899, 0.899, "mono-coverage"),
        (0.0, 0.0, "mono-coverage"),  # eligible steps, none served
        (None, None, "mono-coverage"),  # an engine without the counter
        (None, 0.0, ""),  # no step was eligible
    ],
)
def test_mono_must_serve(
    tmp_path: Path, coverage: float | None, share: float | None, code: str
) -> None:
    judged = judged_mono(tmp_path, mono_coverage=coverage, mono_share=share)
    assert judged.status.code == code
    told = [finding.code for finding in judged.findings if finding.code == "mono-unused"]
    assert told == (["mono-unused"] if (coverage, share) == (None, 0.0) else [])


def test_what_mono_refused_is_told_by_code_and_count(tmp_path: Path) -> None:
    refused = {
        "mono-prefill": 3,
        "mono-no-width": 40,
        "mono-verify": 2,
        "mono-lora": 2,
        "mono-tp": 1,
    }
    judged = judged_mono(tmp_path, mono_coverage=0.5, mono_share=0.4, mono_refusals=refused)
    assert judged.status.sentence == (
        "mono served 50 % of its eligible steps, at least 90 %; not served: mono-no-width 40, "
        "mono-prefill 3, mono-verify 2, mono-lora 2 and 1 more codes"
    )
    few = {"mono-too-many-rows": 12}
    judged = judged_mono(tmp_path, mono_share=0.0, mono_refusals=few)
    (told,) = [finding for finding in judged.findings if finding.code == "mono-unused"]
    assert told.level == "warning"
    assert told.sentence.endswith("served all of them; not served: mono-too-many-rows 12")


def test_an_engine_that_counts_no_steps_of_mono_is_told_so(tmp_path: Path) -> None:
    made = ours(tmp_path, counters=steady())
    arm = replace(made.point.arm, framework="atom", axes=replace(made.point.arm.axes, mono="on"))
    judged = judge(replace(made, point=replace(made.point, arm=arm)), tmp_path)
    told = [finding.level for finding in judged.findings if finding.code == "mono-untold"]
    assert told == ["warning"]
    assert judged.status.code != "mono-coverage"


def test_without_mono_nothing_is_asked_of_it(tmp_path: Path) -> None:
    judged = judged_mono(tmp_path, "off", mono_share=0.0)
    assert (judged.status.state, judged.findings) == ("ok", ())


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


@pytest.mark.parametrize("server", [{}, {"conc": 7, "version": "1"}, {"max-num-seqs": None}])
def test_a_server_that_tells_no_setting_was_not_checked(
    tmp_path: Path, server: dict[str, Any]
) -> None:
    made = ours(tmp_path)
    told = replace(made.provenance, server=server)
    judged = judge(replace(made, provenance=told), tmp_path)
    assert [(f.code, f.level) for f in judged.findings] == [("config-untold", "warning")]
    assert judged.status.state == "ok"


def test_what_the_job_found_counts(tmp_path: Path) -> None:
    found = Finding("config-differs", "error", "dtype is bf16, planned fp32")
    judged = judge(ours(tmp_path, findings=(found,)), tmp_path)
    assert str(judged.status) == "invalid:config-differs"


def test_evaluations(tmp_path: Path) -> None:
    made = record(evaluation(LLAMA, 0.9), Status("measured"))
    assert judge(made, tmp_path).status.code == "no-requests"
    scored = replace(made, score=score(LLAMA, {"strict-match": 0.0}, 6, 0.9, 0.0))
    assert judge(scored, tmp_path).status.state == "ok"  # below its bar is a gate, not a fault


def test_the_server_of_an_evaluation_is_the_planned_one(tmp_path: Path) -> None:
    made = scored_evaluation()
    told = replace(made.provenance, server={"max-num-seqs": 99})
    judged = judge(replace(made, provenance=told), tmp_path)
    assert str(judged.status) == "invalid:config-differs"
    assert "max-num-seqs=99, planned 4" in judged.status.sentence


@pytest.mark.parametrize(
    ("empty", "cut", "found"),
    [
        (0, 50, []),
        (5, 0, [("empty-answers", "warning")]),
        (6, 0, [("empty-answers", "error")]),
        (0, 51, [("cut-answers", "warning")]),
    ],
)
def test_answers_that_no_score_tells_of(
    tmp_path: Path, empty: int, cut: int, found: list[tuple[str, str]]
) -> None:
    made = scored_evaluation(empty=empty, cut=cut, max_tokens=256)
    judged = judge(made, tmp_path)
    assert [(f.code, f.level) for f in judged.findings] == found
    assert judged.status.state == ("invalid" if ("empty-answers", "error") in found else "ok")


def scored_evaluation(**parts: int) -> PointRecord:
    made = record(evaluation(LLAMA, 0.9), Status("measured"))
    found = score(LLAMA, {"strict-match": 0.5}, 100, 0.9, 0.05)
    return replace(made, score=replace(found, **parts))


def test_every_code_of_a_verdict_is_listed_as_what_it_is() -> None:
    said = re.compile(r'(Finding|error|warning|MeasurementError)\(\s*"([a-z-]+)"')
    folder = Path(__file__).parents[2] / "infx/analysis"
    names = ("export.py", "measurements.py", "records.py", "*rules.py")
    paths = [path for name in names for path in folder.glob(name)]
    used = {pair for path in paths for pair in said.findall(path.read_text())}
    assert len(used) > 15
    decisive = {code for how, code in used if how != "warning"}
    assert {CODES[code].family for code in decisive} == {"invalid"}
    assert {CODES[code].family for _, code in used} == {"invalid", "remark"}
