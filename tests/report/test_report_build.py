from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.findings import Finding
from infx.domain.point import FixedLengths
from infx.domain.status import CANCELLED, Status
from infx.report.build import LEFT_OUT_SHOWN, build
from infx.report.model import DECIDING
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    MINI,
    empty_plan,
    evaluation,
    harder_records,
    measurement,
    mono_records,
    point,
    record,
    sample_model,
    sample_plan,
    sample_records,
    score,
    with_mono,
)


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
    model = sample_model()
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


def test_random_weights_are_said_whatever_they_score() -> None:
    mini = next(row for row in sample_model().scores if row.record.point.entry == MINI)
    assert "the weights are random (random:0), so right answers are luck" in mini.note
    lucky = score(MINI, {"robust": 0.25}, 64, 0.1, 0.05)
    (row,) = build([record(evaluation(MINI, 0.1), score=lucky)], empty_plan(), FACTS).scores
    assert "right answers are luck" in row.note
    llama = next(row for row in sample_model().scores if row.record.point.entry == LLAMA)
    assert "random" not in llama.note


def test_the_headline_counts_all_that_was_planned() -> None:
    records = sample_records()
    model = build(records[:3], sample_plan(records), FACTS)
    assert model.verdict.startswith("3 of 8 throughput points valid (5 not run), 3 on a frontier.")
    model = build(records[7:8], sample_plan(records), FACTS)
    assert model.verdict.startswith("No valid throughput point: 7 not run, 1 failed:server-died.")


def test_a_dominated_point_with_other_requests_is_of_the_same_line() -> None:
    model = build(harder_records(), empty_plan(), FACTS)
    assert len(model.series) == 2
    assert [bool(row.frontiers) for row in model.rows] == [True, True, False, True]


def test_names_do_not_repeat_their_entry() -> None:
    assert [row.name for row in sample_model().rows][:3] == ["c1-mns1", "c2-mns2", "c4-mns4"]
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


def test_the_ledger_lists_up_to_a_cap_and_counts_all() -> None:
    records = sample_records()
    plan = sample_plan(records)
    many = replace(plan, ledger=plan.ledger * 200, counts={"run": 2000, "excluded": 900})
    model = build(records, many, FACTS)
    assert len(model.left_out) == LEFT_OUT_SHOWN
    assert model.left_out_total == 900


def test_what_points_share_stands_once() -> None:
    model = sample_model()
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
