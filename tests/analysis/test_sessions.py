"""Recorded sessions: what their exports are judged by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.analysis.asked import read_asked
from infx.analysis.curves import line_of, lines_of
from infx.analysis.export import read_export
from infx.analysis.measurements import measure
from infx.analysis.pairing import pair_runs
from infx.analysis.validity import judge, judge_folder
from infx.domain.errors import UsageError
from infx.domain.point import Agentic, Point
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.analysis.made_arms import seen
from tests.analysis.made_exports import BASE_NS, row, write_run
from tests.public_data import shared
from tests.report.sample_runs import LLAMA, point, record

PUBLIC = Agentic(trace="semianalysis_cc_traces_weka_062126", warmup_requests_per_lane=1)
OWN = Agentic(trace="/t", content="a", duration_s=8, warmup_requests_per_lane=1)
PHASE = {"kind": "profiling", "concurrency": 2, "duration": 8.0, "timing_mode": "agentic_replay"}
CONFIG = {"phases": [PHASE], "datasets": [{"type": "file", "format": "weka_trace"}]}
UNSAFE = {"submission_valid": False, "submission_invalid_reasons": ["unsafe_override"]}


def turn(lane: int, at_ms: float, **parts: Any) -> dict[str, Any]:
    made = row(at_ms, 100.0, **({"osl_mismatch_diff_pct": 0.0} | parts))
    made["metadata"]["root_correlation_id"] = f"lane-{lane}"
    return made


def replayed(lanes: int = 2, end_ms: float = 7000.0) -> list[dict[str, Any]]:
    """Lanes that pause between their turns: a tenth of the asked load is in flight."""
    warm = [turn(lane, -500.0, phase="warmup") for lane in range(lanes)]
    turns = [turn(lane, end_ms / 6 * at, osl=4 + at) for lane in range(lanes) for at in range(7)]
    return [*warm, *turns]


def folder_of(path: Path, rows: list[dict[str, Any]], **summary: Any) -> Path:
    told: dict[str, Any] = {"input_config": CONFIG, "metadata": {"submission_valid": True}}
    return write_run(path, rows, **(told | summary))


def ours(
    path: Path, load: Agentic, rows: list[dict[str, Any]] | None = None, conc: int = 2, **told: Any
) -> PointRecord:
    planned = replace(point(LLAMA, conc, 4), workload=load)
    made = record(planned, Status("measured"), artifacts={"aiperf": "job/aiperf"})
    attempt = replace(made.attempt, started_s=BASE_NS / 1e9 - 60, ended_s=0.0)
    folder_of(path / "job/aiperf", replayed() if rows is None else rows, **told)
    return replace(made, attempt=attempt)


def found(judged: PointRecord) -> list[tuple[str, str]]:
    return [(f.code, f.level) for f in judged.findings]


def test_pauses_and_lengths_of_their_own_are_no_fault(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path, replace(PUBLIC, duration_s=8)), tmp_path)
    assert str(judged.status) == "ok"
    assert judged.findings == ()
    figures = judged.measurement
    assert figures is not None
    assert (figures.requests.ok, figures.requests.warmup) == (14, 2)
    assert figures.observed_conc == pytest.approx(0.2, abs=0.01)
    assert figures.e2e_interactivity_tok_s.n == 14
    assert figures.e2e_interactivity_tok_s.p50 == pytest.approx(7 / 0.1)
    assert figures.theoretical_prefix_hit_share is None


def test_the_real_scenario_as_it_was_planned() -> None:
    folder = shared("data/aiperf_exports/ds_weka_scn")
    made = record(
        replace(point(LLAMA, 2, 4), workload=OWN), Status("measured"), artifacts={"aiperf": "."}
    )
    made = replace(made, attempt=replace(made.attempt, started_s=0.0, ended_s=0.0))
    judged = judge(made, folder)
    assert str(judged.status) == "ok"
    assert found(judged) == [("own-scenario", "warning")]
    assert "duration-s 8 is under 900" in judged.findings[0].sentence
    assert judged.measurement is not None
    assert judged.measurement.theoretical_prefix_hit_share == pytest.approx(0.712871)
    assert (judged.measurement.requests.ok, judged.measurement.requests.warmup) == (36, 2)
    asked = judge(replace(made, point=replace(made.point, conc=9)), folder)
    assert asked.status.code == "concurrency-off"


def test_what_was_asked_is_read_from_an_export(tmp_path: Path) -> None:
    asked = read_asked(CONFIG)
    assert (asked.lanes, asked.conc, asked.osl, asked.duration_s) == (2, None, None, 8.0)
    assert asked.error_share == 0.10
    assert str(judge_folder(folder_of(tmp_path, replayed())).status) == "ok"


@pytest.mark.parametrize(
    ("load", "reasons", "code"),
    [
        (OWN, ["unsafe_override"], ""),
        (OWN, ["unsafe_override", "context_overflow_rate_exceeded"], "unsafe-scenario"),
        (replace(PUBLIC, duration_s=900), ["unsafe_override"], "unsafe-scenario"),
    ],
)
def test_an_override_counts_where_it_was_planned(
    tmp_path: Path, load: Agentic, reasons: list[str], code: str
) -> None:
    metadata = UNSAFE | {"submission_invalid_reasons": reasons}
    rows = replayed(end_ms=load.duration_s * 1000.0)
    judged = judge(ours(tmp_path, load, rows, metadata=metadata), tmp_path)
    assert judged.status.code == code
    assert judge_folder(tmp_path / "job/aiperf").status.code == "unsafe-scenario"


@pytest.mark.parametrize(("refused", "level"), [(0, ""), (1, "warning"), (2, "error")])
def test_requests_that_aiperf_leaves_out(tmp_path: Path, refused: int, level: str) -> None:
    rows = [turn(at % 2, at * 80.0) for at in range(100)]
    count = {"skipped_context_overflow_count": {"avg": float(refused)}} if refused else {}
    judged = judge(ours(tmp_path, OWN, rows, metadata=UNSAFE, **count), tmp_path)
    told = [f for f in judged.findings if f.code == "context-overflow"]
    assert [f.level for f in told] == ([level] if level else [])
    assert (judged.status.code == "context-overflow") == (level == "error")


def test_every_lane_replays_a_session(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path, OWN, conc=3, metadata=UNSAFE), tmp_path)
    assert judged.status.code == "concurrency-off"
    assert "2 sessions sent requests, asked 3 at a time" in judged.status.sentence


@pytest.mark.parametrize(("asked", "short"), [(1, False), (2, True), (10, True)])
def test_a_warm_up_that_sent_less(tmp_path: Path, asked: int, short: bool) -> None:
    load = replace(OWN, warmup_requests_per_lane=asked)
    judged = judge(ours(tmp_path, load, metadata=UNSAFE), tmp_path)
    assert judged.status.state == "ok"
    assert (("warmup-short", "warning") in found(judged)) is short


def test_a_length_that_the_export_does_not_compare_is_told(tmp_path: Path) -> None:
    rows = [*replayed(), turn(0, 6900.0, osl_mismatch_diff_pct=...)]
    judged = judge(ours(tmp_path, replace(PUBLIC, duration_s=8), rows), tmp_path)
    assert judged.status.state == "ok"
    assert found(judged) == [("asked-unknown", "warning")]
    assert judged.findings[0].sentence.startswith("1 of 15 answers do not tell how long")


def test_outputs_shorter_than_recorded(tmp_path: Path) -> None:
    rows = [*replayed(), turn(0, 6900.0, osl_mismatch_diff_pct=-40.0)]
    judged = judge(ours(tmp_path, OWN, rows, metadata=UNSAFE), tmp_path)
    assert judged.status.code == "osl-mismatch"
    assert "1 of 15 outputs are not as long as recorded" in judged.status.sentence


@pytest.mark.parametrize(
    ("rows", "told", "code"),
    [
        ([], {}, "no-requests"),
        ([turn(lane, 0.0, phase="warmup") for lane in range(2)], {}, "no-requests"),
        (replayed(), {"was_cancelled": True, "is_complete": False}, "interrupted-run"),
        (replayed(), {"cancelled": 4}, "cancelled-in-flight"),
        (replayed(), {"cancelled": None}, "cancelled-in-flight"),
        ([*replayed(), *[turn(0, 9.0, error={"type": "TimeoutError"})] * 2], {}, "errors"),
        ([*replayed(), turn(0, 9.0, error={"type": "TimeoutError"})], {}, ""),  # 6.7 % of 10 %
    ],
)
def test_bad_replays_are_invalid_each_by_its_code(
    tmp_path: Path, rows: list[dict[str, Any]], told: dict[str, Any], code: str
) -> None:
    judged = judge(ours(tmp_path, OWN, rows, metadata=UNSAFE, **told), tmp_path)
    assert judged.status.code == code


@pytest.mark.parametrize(("end_s", "code"), [(880, ""), (789, "window-short")])
def test_a_window_that_ends_early(tmp_path: Path, end_s: int, code: str) -> None:
    """Nine tenths of 900 s, less ten seconds of silence at each end."""
    judged = judge(ours(tmp_path, replace(PUBLIC, duration_s=900), replayed(end_ms=end_s * 1e3)),
                   tmp_path)  # fmt: skip
    assert judged.status.code == code


def test_sessions_are_there_to_hit_the_cache(tmp_path: Path) -> None:
    made = ours(tmp_path, OWN, metadata=UNSAFE)
    warm = replace(made, counters=EngineCounters(prefix_cache_hit_share=0.97))
    assert found(judge(warm, tmp_path)) == [("own-scenario", "warning")]


def test_the_theory_of_the_cache_is_a_share(tmp_path: Path) -> None:
    told = {"theoretical_prefix_cache_hit": {"unit": "%", "avg": 71.5, "count": 200, "sum": 143}}
    export = read_export(folder_of(tmp_path, replayed(), **told))
    assert measure(export, read_asked(CONFIG), 1).theoretical_prefix_hit_share == 0.715


def of_trace(load: Agentic) -> Point:
    return replace(point(LLAMA, 1, 4), workload=load)


def test_runs_of_one_trace_are_compared_wherever_it_lies() -> None:
    here, there = OWN, replace(OWN, trace="/there/t", error_share=0.2)
    found = pair_runs([seen(of_trace(here))], [seen(of_trace(there), run="r2")])
    assert len(found.pairs) == 1
    for other in (replace(there, content="b"), PUBLIC):
        with pytest.raises(UsageError, match="is asked what"):
            pair_runs([seen(of_trace(here))], [seen(of_trace(other), run="r2")])


def test_each_trace_is_a_line_of_its_own() -> None:
    points = [of_trace(load) for load in (OWN, replace(OWN, content="b"), OWN)]
    fixed = point(LLAMA, 1, 4)
    lines = lines_of([*points, fixed])
    assert [line.workload for line in lines] == [
        "agentic t (a), 8 s",
        "agentic t (b), 8 s",
        "64 in, 32 out",
    ]
    assert line_of(points[0]).apart(lines) == "agentic t (a), 8 s"
