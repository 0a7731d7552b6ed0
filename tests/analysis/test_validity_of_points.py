"""Our own points: compared with the plan and with what the engine told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.analysis.validity import judge
from infx.domain.findings import Finding
from infx.domain.point import FixedLengths
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.analysis.made_exports import BASE_NS, closed_loop, ours, row, steady, write_run
from tests.report.sample_runs import LLAMA, MINI, evaluation, record, score


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


def test_a_clock_that_was_set_forward(tmp_path: Path) -> None:
    made = ours(tmp_path, phases_s={"client": 0.45})
    assert judge(made, tmp_path).status.state == "ok"  # a window of 0.5 s
    judged = judge(replace(made, phases_s={"client": 0.39}), tmp_path)
    assert judged.status.code == "clock-skew"
    assert "window is 0.5 s long, and the client ran 0.39 s" in judged.status.sentence
