from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infx.analysis.validity import Limits, Verdict, judge_folder
from infx.domain.codes import CODES
from tests.analysis.made_exports import BASE_NS, closed_loop, ramped, row, write_run
from tests.public_data import shared

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
