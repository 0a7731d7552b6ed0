from __future__ import annotations

from dataclasses import replace

from infx.domain.point import FixedLengths
from infx.domain.status import CANCELLED, Status
from infx.report.build import LEFT_OUT_SHOWN, build
from infx.report.model import Gate, ReportModel
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    MINI,
    evaluation,
    measurement,
    point,
    record,
    sample_plan,
    sample_records,
    score,
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
    assert "5 at or above the bar, 1 not decided" in model.verdict
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
    assert {"e2e-interactivity"} <= model.rows[1].frontiers


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
    assert {row.runs for row in model.rows} == {2}
    assert len({row.anchor for row in model.rows}) == 2
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


def test_a_random_model_scores_zero_and_the_report_says_so() -> None:
    mini = next(row for row in sample().scores if row.record.point.entry == MINI)
    assert "a random model scores 0" in mini.note
    llama = next(row for row in sample().scores if row.record.point.entry == LLAMA)
    assert "random" not in llama.note


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
