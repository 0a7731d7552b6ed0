from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.findings import Finding
from infx.domain.status import Status
from infx.report.build import build
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    counters,
    empty_plan,
    evaluation,
    gate,
    harder_records,
    measurement,
    mono_records,
    point,
    record,
    sample_model,
    sample_plan,
    sample_records,
    score,
)


def test_the_verdict_counts_every_point() -> None:
    model = sample_model()
    assert model.level == "attention"
    assert model.verdict.startswith(
        "6 of 8 throughput points valid (1 invalid, 1 failed), 6 on a frontier."
    )
    assert "2 at or above the bar, 1 not decided" in model.verdict
    assert "3 without a bar" in model.verdict  # of a bar of 0
    reasons = " ".join(gate(model, "Points").items)
    assert "invalid:acceptance-off realised acceptance length 2.4100" in reasons
    assert "failed:server-died" in reasons


def test_repeats_are_counted() -> None:
    once = record(point(LLAMA, 1, 1), measurement=measurement(1, 10.0, 10.0))
    again = replace(once, measurement=measurement(1, 11.0, 10.0))
    model = build([once, again], sample_plan(sample_records()), FACTS)
    (row,) = model.rows
    assert row.runs == 2
    shown = row.figures["itl_p50"]
    assert (shown.value, shown.runs) == (pytest.approx(110**0.5), 2)  # the geometric mean
    assert shown.low is not None
    assert shown.low < 10 < 11 < (shown.high or 0)
    assert row.chance == 1
    assert gate(model, "Points").sentence == (
        "7 not run, 1 ok; 1 further measurement of the same points."
    )
    assert gate(model, "Noise").level == "good"


def test_points_without_a_record_are_not_run() -> None:
    records = sample_records()
    model = build(records[:3], sample_plan(records), FACTS)
    told = gate(model, "Points")
    assert "5 not run" in told.sentence
    assert len(told.items) == 5
    assert gate(model, "Accuracy").level == "attention"


def test_a_score_below_its_bar_fails_the_report() -> None:
    records = sample_records()[:1]
    low = score(LLAMA, {"strict-match": 0.5}, 1319, 0.9, 0.0138)
    records.append(record(evaluation(LLAMA, 0.9), score=low))
    model = build(records, sample_plan(records), FACTS)
    assert model.level == "bad"
    assert "below the bar of 0.9" in gate(model, "Accuracy").items[0]


def test_an_evaluation_that_is_not_ok_is_a_case_and_not_a_pass() -> None:
    good = record(evaluation(LLAMA, 0.2), score=score(LLAMA, {"robust": 0.9}, 64, 0.2, 0.04))
    assert gate(build([good], empty_plan(), FACTS), "Accuracy").level == "good"
    status = Status("invalid", "config-differs", "dtype is bf16, planned fp32")
    model = build([replace(good, status=status)], empty_plan(), FACTS)
    told = gate(model, "Accuracy")
    assert told.level == "attention"
    assert "1 evaluation without a valid score" in told.sentence
    assert told.items == (f"{good.point.label}: invalid:config-differs {status.sentence}",)
    assert model.scores[0].verdicts == ()
    assert model.scores[0].note == status.sentence


def test_without_a_bar_nothing_is_judged() -> None:
    found = score(LLAMA, {"robust": 0.9, "strict-match": 0.8}, 64, 0.0, 0.04)
    told = gate(
        build([record(evaluation(LLAMA, 0.0), score=found)], empty_plan(), FACTS), "Accuracy"
    )
    assert told.level == "note"
    assert "has a bar: nothing was judged" in told.sentence


def test_one_right_answer_of_one_decides_nothing() -> None:
    found = score(LLAMA, {"robust": 1.0}, 1, 0.9, 0.0)
    told = gate(
        build([record(evaluation(LLAMA, 0.9), score=found)], empty_plan(), FACTS), "Accuracy"
    )
    assert told.level == "attention"
    assert "1 not decided" in told.sentence


def test_the_headline_counts_a_repeated_point_once() -> None:
    records = harder_records()
    model = build(records, sample_plan(records), FACTS)
    assert model.verdict.startswith("4 of 4 throughput points valid, 3 on a frontier.")
    broken = replace(records[0], status=Status("invalid", "errors", "too many"))
    model = build([broken, *records[1:]], sample_plan(records), FACTS)
    assert model.verdict.startswith("4 of 4 throughput points valid")
    assert any("invalid:errors" in case for case in gate(model, "Points").items)


def test_evaluations_alone_are_not_a_failure() -> None:
    records = [r for r in sample_records() if r.point.mode == "evaluation"]
    model = build(records, sample_plan(records), FACTS)
    assert model.verdict.startswith("No throughput point was planned. Of 6 accuracy filters")
    assert gate(model, "Points").level == "note"


def test_acceptance_is_counted_over_all_measured_points() -> None:
    told = gate(sample_model(), "Acceptance")
    assert told.level == "attention"
    assert "realised on 3 of 4 measured points" in told.sentence
    assert "limit ±1 % at 4,100 steps (1 % of it)" in told.sentence
    # Another fault decides the status, and the finding is still counted.
    records = sample_records()
    worse = replace(records[6], status=Status("invalid", "errors", "too many"))
    told = gate(build([*records[:6], worse], sample_plan(records), FACTS), "Acceptance")
    assert "realised on 3 of 4 measured points" in told.sentence
    assert len(told.items) == 1


def test_acceptance_prints_its_widest_limit_and_the_steps() -> None:
    few = replace(sample_records()[3], counters=counters(2.753, verify_steps=81))
    told = gate(build([few], empty_plan(), FACTS), "Acceptance")
    assert told.level == "good"
    assert "at most 0.971 % off; limit ±6.6 % at 81 steps (4σ of the law)." in told.sentence


def test_an_engine_that_tells_no_acceptance_counts_as_off() -> None:
    text = "the engine does not tell its acceptance length, asked 2.78"
    silent = replace(
        sample_records()[3], counters=None, status=Status("invalid", "acceptance-off", text),
        findings=(Finding("acceptance-off", "error", text),),
    )  # fmt: skip
    told = gate(build([silent], empty_plan(), FACTS), "Acceptance")
    assert "realised on 0 of 1 measured point" in told.sentence


def test_few_requests_behind_a_p90_are_noted() -> None:
    enough = gate(build([sample_records()[1]], empty_plan(), FACTS), "Samples")
    assert (enough.level, enough.sentence) == ("good", "20 requests or more behind every p90.")
    one = measurement(1, 10.0, 10.0)
    few = replace(one, requests=replace(one.requests, ok=9))
    records = [record(point(LLAMA, 1, 1), measurement=few), sample_records()[1]]
    told = gate(build(records, empty_plan(), FACTS), "Samples")
    assert told.level == "note"
    assert "1 of 2 valid points with fewer than 20 requests" in told.sentence
    assert "least 9" in told.sentence
    assert told.items == (f"{records[0].point.label}: 9 requests",)


def test_warnings_of_results_that_count_are_listed() -> None:
    assert "Warnings" not in [gate.name for gate in sample_model().gates]
    hits = Finding("prefix-cache-hits", "warning", "56 % of the input")
    records = [replace(sample_records()[0], findings=(hits,))]
    model = build(records, empty_plan(), FACTS)
    assert gate(model, "Warnings").level == "note"
    assert "prefix-cache-hits 56 % of the input" in gate(model, "Warnings").items[0]
    assert model.rows[0].warnings == 1


def test_a_ledger_that_does_not_add_up_is_seen() -> None:
    records = sample_records()
    plan = sample_plan(records)
    assert gate(build(records, plan, FACTS), "Ledger").level == "good"
    short = replace(plan, candidates=plan.candidates + 1)
    assert gate(build(records, short, FACTS), "Ledger").level == "bad"


def test_mono_has_a_gate_where_it_is_claimed() -> None:
    told = gate(build(mono_records(), empty_plan(), FACTS), "Mono")
    assert told.level == "attention"
    assert told.sentence == (
        "Mono served its steps on 2 of 4 measured points: 98.2 % to 100 % of the eligible ones, "
        "91.0 % to 100 % of all decode steps."
    )
    assert "mono-width-not-built 340" in told.items[0]
    assert "no decode step was eligible" in told.items[1]
    served = [r for r in mono_records() if r.point.conc < 4]
    assert gate(build(served, empty_plan(), FACTS), "Mono").level == "good"
    wide = [r for r in mono_records() if r.point.conc == 8]
    told = gate(build(wide, empty_plan(), FACTS), "Mono")
    assert (told.level, told.sentence) == (
        "note",
        "Mono served its steps on 0 of 1 measured point.",
    )
    assert "Mono" not in [gate.name for gate in sample_model().gates]
