from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.findings import Finding
from infx.domain.point import FixedLengths
from infx.domain.status import CANCELLED, Status
from infx.report.build import LEFT_OUT_SHOWN, build
from infx.report.model import DECIDING, Gate, ReportModel
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    MINI,
    counters,
    empty_plan,
    evaluation,
    harder_records,
    measurement,
    mono_records,
    point,
    record,
    sample_plan,
    sample_records,
    score,
    with_mono,
)


def sample() -> ReportModel:
    records = sample_records()
    return build(records, sample_plan(records), FACTS)


def gate(model: ReportModel, name: str) -> Gate:
    return next(gate for gate in model.gates if gate.name == name)


def test_the_verdict_counts_every_point() -> None:
    model = sample()
    assert model.level == "attention"
    assert model.verdict.startswith(
        "6 of 8 throughput points valid (1 invalid, 1 failed), 6 on a frontier."
    )
    assert "2 at or above the bar, 1 not decided" in model.verdict
    assert "3 without a bar" in model.verdict  # of a bar of 0
    reasons = " ".join(gate(model, "Points").items)
    assert "invalid:acceptance-off realised acceptance length 2.4100" in reasons
    assert "failed:server-died" in reasons


def test_an_invalid_point_is_drawn_and_never_on_a_frontier() -> None:
    records = [
        record(
            point(LLAMA, conc, conc),
            Status("invalid", "errors", "too many") if conc == 4 else Status("ok"),
            measurement=measurement(conc, 10.0, 10.0),
        )
        for conc in (1, 2, 4)
    ]
    model = build(records, sample_plan(sample_records()), FACTS)
    chart = model.charts[0]
    assert len(chart.marks) == 3
    best = max(chart.marks, key=lambda mark: mark.y)  # equal latency: it would win alone
    assert not best.row.valid
    assert not best.on_frontier
    assert [mark.row.record.point.conc for mark in chart.frontiers[0]] == [2]


def test_a_dominated_point_leaves_the_line() -> None:
    records = [
        record(point(LLAMA, 1, 1), measurement=measurement(1, 10.0, 10.0)),
        record(point(LLAMA, 2, 2), measurement=measurement(2, 30.0, 30.0)),
    ]
    model = build(records, sample_plan(sample_records()), FACTS)
    assert [row.frontiers != frozenset() for row in model.rows] == [True, False]


def test_other_views_show_the_intersection_with_the_deciding_one() -> None:
    # Slow first tokens: low E2E-normalised interactivity, yet a short ITL.
    slow_start = measurement(2, 5.0, 2000.0)
    steady = measurement(2, 6.0, 20.0)
    records = [
        record(point(LLAMA, 2, 2), measurement=slow_start),
        record(point(LLAMA, 2, 4), measurement=steady),
    ]
    model = build(records, sample_plan(sample_records()), FACTS)
    assert model.rows[0].frontiers == frozenset()
    assert DECIDING in model.rows[1].frontiers
    assert ("interactivity_p90", "tput_tok_s_gpu") in model.rows[1].frontiers


def test_entries_have_frontiers_of_their_own() -> None:
    model = sample()
    assert [series.label for series in model.series] == [LLAMA, MINI]
    on = {row.series.label for row in model.rows if row.frontiers}
    assert on == {LLAMA, MINI}  # though one is a hundred times faster


def test_other_workloads_are_another_line() -> None:
    first = point(LLAMA, 1, 1)
    longer = FixedLengths(isl=128, osl=256, requests=10)
    second = replace(first, point_id="f" * 64, workload=longer)
    records = [
        record(first, measurement=measurement(1, 10.0, 10.0)),
        record(second, measurement=measurement(1, 50.0, 50.0)),
    ]
    model = build(records, replace(sample_plan(sample_records()), points=(first, second)), FACTS)
    assert [series.label for series in model.series] == [
        f"{LLAMA} (64 in, 32 out)",
        f"{LLAMA} (128 in, 256 out)",
    ]
    assert all(row.frontiers for row in model.rows)


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


def test_no_record_at_all_is_an_explained_empty_report() -> None:
    model = build([], sample_plan(sample_records()), FACTS)
    assert model.level == "bad"
    assert model.verdict.startswith("No valid throughput point: nothing was measured")
    assert [gate.name for gate in model.gates] == ["Points", "Accuracy", "Ledger"]


def test_no_valid_point_says_why() -> None:
    records = [record(point(LLAMA, c, c), Status("failed", "port-busy", "8000")) for c in (1, 2)]
    records.append(record(point(LLAMA, 4, 4), CANCELLED))
    model = build(records, sample_plan(records), FACTS)
    assert model.verdict.startswith("No valid throughput point: 2 failed:port-busy, 1 cancelled.")


def test_a_score_below_its_bar_fails_the_report() -> None:
    records = sample_records()[:1]
    low = score(LLAMA, {"strict-match": 0.5}, 1319, 0.9, 0.0138)
    records.append(record(evaluation(LLAMA, 0.9), score=low))
    model = build(records, sample_plan(records), FACTS)
    assert model.level == "bad"
    assert "below the bar of 0.9" in gate(model, "Accuracy").items[0]


def test_random_weights_are_said_whatever_they_score() -> None:
    mini = next(row for row in sample().scores if row.record.point.entry == MINI)
    assert "the weights are random (random:0), so right answers are luck" in mini.note
    lucky = score(MINI, {"robust": 0.25}, 64, 0.1, 0.05)
    (row,) = build([record(evaluation(MINI, 0.1), score=lucky)], empty_plan(), FACTS).scores
    assert "right answers are luck" in row.note
    llama = next(row for row in sample().scores if row.record.point.entry == LLAMA)
    assert "random" not in llama.note


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


def test_the_headline_counts_all_that_was_planned() -> None:
    records = sample_records()
    model = build(records[:3], sample_plan(records), FACTS)
    assert model.verdict.startswith("3 of 8 throughput points valid (5 not run), 3 on a frontier.")
    model = build(records[7:8], sample_plan(records), FACTS)
    assert model.verdict.startswith("No valid throughput point: 7 not run, 1 failed:server-died.")


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
    told = gate(sample(), "Acceptance")
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
    assert "Warnings" not in [gate.name for gate in sample().gates]
    hits = Finding("prefix-cache-hits", "warning", "56 % of the input")
    records = [replace(sample_records()[0], findings=(hits,))]
    model = build(records, empty_plan(), FACTS)
    assert gate(model, "Warnings").level == "note"
    assert "prefix-cache-hits 56 % of the input" in gate(model, "Warnings").items[0]
    assert model.rows[0].warnings == 1


def test_a_dominated_point_with_other_requests_is_of_the_same_line() -> None:
    model = build(harder_records(), empty_plan(), FACTS)
    assert len(model.series) == 2
    assert [bool(row.frontiers) for row in model.rows] == [True, True, False, True]


def test_names_do_not_repeat_their_entry() -> None:
    assert [row.name for row in sample().rows][:3] == ["c1-mns1", "c2-mns2", "c4-mns4"]
    assert build(harder_records(), empty_plan(), FACTS).rows[3].name == "long"


def test_an_axis_that_differs_is_marked_by_its_name() -> None:
    told = replace(sample_records()[0].provenance, server={"max-num-seqs": 9, "k": 0})
    text = "the server runs threads=1, planned k=9 block-size= max-num-batched-tokens=3"
    found = (Finding("config-differs", "error", text),)
    (arm,) = build(
        [replace(sample_records()[0], provenance=told, findings=found)], empty_plan(), FACTS
    ).arms
    assert [axis.name for axis in arm.axes if axis.differs] == ["max-num-seqs"]


@pytest.mark.parametrize(
    ("excluded_by", "told"),
    [
        ({"mono-tp": 2}, [("mono-tp", "mono: on with tp 2", 2)]),
        (
            {"mono-tp: no kernels for fp32": 1, "mono-tp: no kernels for K=5": 7},
            [
                ("mono-tp", "no kernels for fp32", 1),
                ("mono-tp", "no kernels for K=5", 7),
            ],
        ),
        ({"tp-heads": 3}, [("tp-heads", "tp does not divide the attention heads", 3)]),
        ({"conc > 4: too many": 5}, [("", "conc > 4: too many", 5)]),
    ],
)  # fmt: skip
def test_what_left_candidates_out_is_told_by_its_text(
    excluded_by: dict[str, int], told: list[tuple[str, str, int]]
) -> None:
    plan = replace(sample_plan(sample_records()), excluded_by=excluded_by)
    rows = build([], plan, FACTS).excluded_by
    assert [(row.code, row.text, row.candidates) for row in rows] == told


def test_the_reason_of_an_exclude_rule_stands_beside_it() -> None:
    plan = sample_plan(sample_records())
    ruled = replace(plan.ledger[-2], rule="conc > 4", sentence="more than the cores hold")
    plan = replace(plan, ledger=(*plan.ledger, ruled), excluded_by={"conc > 4": 1})
    (row,) = build([], plan, FACTS).excluded_by
    assert (row.code, row.text) == ("", "conc > 4: more than the cores hold")


def test_a_ledger_that_does_not_add_up_is_seen() -> None:
    records = sample_records()
    plan = sample_plan(records)
    assert gate(build(records, plan, FACTS), "Ledger").level == "good"
    short = replace(plan, candidates=plan.candidates + 1)
    assert gate(build(records, short, FACTS), "Ledger").level == "bad"


def test_the_ledger_lists_up_to_a_cap_and_counts_all() -> None:
    records = sample_records()
    plan = sample_plan(records)
    many = replace(plan, ledger=plan.ledger * 200, counts={"run": 2000, "excluded": 900})
    model = build(records, many, FACTS)
    assert len(model.left_out) == LEFT_OUT_SHOWN
    assert model.left_out_total == 900


def test_what_points_share_stands_once() -> None:
    model = sample()
    assert model.environment["aiperf"] == "0.13.0"
    first = point(LLAMA, 1, 1)
    same_arm = replace(first, point_id="e" * 64, conc=2)
    records = [record(p, measurement=measurement(p.conc, 9.0, 9.0)) for p in (first, same_arm)]
    assert [len(arm.records) for arm in build(records, sample_plan(records), FACTS).arms] == [2]


def test_mono_off_and_on_are_two_curves() -> None:
    records = mono_records()
    model = build(records, sample_plan(records), FACTS)
    assert [series.label for series in model.series] == [f"{MINI} (mono off)", f"{MINI} (mono on)"]
    on = {row.series.label: set[int]() for row in model.rows}
    for row in model.rows:
        on[row.series.label] |= {row.record.point.conc} if row.frontiers else set()
    # Each has its own frontier, though mono on beats mono off wherever it served.
    assert on == {f"{MINI} (mono off)": {1, 2, 4, 8}, f"{MINI} (mono on)": {1, 2, 8}}
    assert set(model.charts[0].frontiers) == {0, 1}


def test_evaluations_of_one_entry_are_told_apart_by_their_servers() -> None:
    mono = [with_mono(evaluation(MINI, 0.5), value) for value in ("off", "on")]
    records = [
        record(one, score=score(MINI, {"strict-match": 0.9}, 500, 0.5, 0.01))
        for one in (*mono, evaluation(LLAMA, 0.5))
    ]
    rows = build(records, empty_plan(), FACTS).scores
    assert [row.server for row in rows] == [f"{MINI} (mono off)", f"{MINI} (mono on)", LLAMA]


def test_mono_is_named_only_where_it_tells_curves_apart() -> None:
    alone = [r for r in mono_records() if r.point.arm.axes.mono == "on"]
    assert [s.label for s in build(alone, empty_plan(), FACTS).series] == [MINI]
    longer = replace(
        alone[0].point, workload=FixedLengths(isl=128, osl=256, requests=10), point_id="f" * 64
    )
    both = [*mono_records()[:2], replace(alone[0], point=longer)]
    assert [s.label for s in build(both, empty_plan(), FACTS).series] == [
        f"{MINI} (mono off, 64 in, 32 out)",
        f"{MINI} (mono on, 64 in, 32 out)",
        f"{MINI} (mono on, 128 in, 256 out)",
    ]


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
    assert "Mono" not in [gate.name for gate in sample().gates]
