"""Several runs in one report: repeats, workloads side by side, and what cannot be drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from infx.domain.hardware import Price
from infx.domain.plan import Plan
from infx.domain.point import FixedLengths, Point
from infx.domain.record import Energy, PointRecord
from infx.domain.status import Status
from infx.report.build import build, build_runs
from infx.report.model import DECIDING, RunData, RunFacts
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    empty_plan,
    evaluation,
    gate,
    measurement,
    point,
    record,
    sample_plan,
    score,
)


def run(name: str, records: list[PointRecord], plan: Plan | None = None) -> RunData:
    made = [replace(r, attempt=replace(r.attempt, run_id=name)) for r in records]
    plan = plan or sample_plan(made)
    return RunData(facts=RunFacts(run_id=name), plan=plan, records=tuple(made))


def measured(of: Point, itl_ms: float, started_s: float = 0.0) -> PointRecord:
    made = record(of, measurement=measurement(of.conc, itl_ms, 10.0))
    return replace(made, attempt=replace(made.attempt, started_s=started_s))


def test_the_same_point_of_two_runs_is_one_row_with_both() -> None:
    first = [measured(point(LLAMA, c, c), 10.0) for c in (1, 2)]
    second = [measured(point(LLAMA, c, c), 40.0, 9.0) for c in (2, 4)]
    model = build_runs([run("a", first), run("b", second)])
    assert [facts.run_id for facts in model.runs] == ["a", "b"]
    assert [(row.record.point.conc, row.runs) for row in model.rows] == [(1, 1), (2, 2), (4, 1)]
    twice = model.rows[1]
    assert twice.figures["itl_p50"].value == pytest.approx(20.0)
    assert twice.record.attempt.run_id == "b"  # the newest stands
    assert gate(model, "Points").sentence == "3 ok; 1 further measurement of the same points."
    assert [one.x for one in model.charts[0].marks if one.row is twice] == [
        twice.figures[DECIDING[0]].value
    ]


def test_a_valid_measurement_stands_before_a_newer_one_that_is_not() -> None:
    of = point(LLAMA, 1, 1)
    good = measured(of, 10.0)
    bad = replace(measured(of, 1.0, 9.0), status=Status("invalid", "errors", "too many"))
    (row,) = build_runs([run("a", [good]), run("b", [bad])]).rows
    assert (row.valid, row.runs, row.figures["itl_p50"].value) == (True, 1, 10.0)
    assert [lost.attempt.run_id for lost in row.lost] == ["b"]
    assert row.record.attempt.run_id == "a"
    told = gate(build_runs([run("a", [good]), run("b", [bad])]), "Points")
    assert told.level == "attention"
    assert told.items == (f"{of.label}: invalid:errors too many (a repeat of 1 valid)",)


def test_an_invalid_point_shows_its_figures_and_counts_no_run() -> None:
    bad = replace(measured(point(LLAMA, 1, 1), 10.0), status=Status("invalid", "errors", "many"))
    (row,) = build([bad], empty_plan(), FACTS).rows
    assert (row.runs, row.figures["itl_p50"].runs, row.frontiers) == (0, 0, frozenset())


def test_two_workloads_are_two_lines_and_the_report_says_so() -> None:
    first = point(LLAMA, 1, 1)
    longer = FixedLengths(isl=512, osl=32, requests=10)
    other = replace(first, point_id="f" * 64, workload=longer)
    model = build_runs([run("a", [measured(first, 10.0)]), run("b", [measured(other, 20.0)])])
    assert model.workloads == ("64 in, 32 out", "512 in, 32 out")
    assert all(row.on_frontier for row in model.rows)  # each of its own line, though one is slower
    told = gate(model, "Workloads")
    assert told.level == "note"
    assert "each is a line with a frontier of its own" in told.sentence
    assert told.items == model.workloads
    alone = build([measured(first, 10.0)], empty_plan(), FACTS)
    assert "Workloads" not in [gate.name for gate in alone.gates]


def test_a_line_of_two_images_says_so() -> None:
    first, second = point(LLAMA, 1, 1), point(LLAMA, 2, 2)
    other = replace(second, arm=replace(second.arm, image="pypi:xllamacpp==2"))
    model = build_runs([run("a", [measured(first, 9.0)]), run("b", [measured(other, 9.0)])])
    told = gate(model, "Images")
    assert (told.level, told.items) == ("note", (f"{LLAMA}: {first.arm.image}, pypi:xllamacpp==2",))
    same = build_runs([run("a", [measured(first, 9.0)]), run("b", [measured(second, 9.0)])])
    assert "Images" not in [gate.name for gate in same.gates]


def test_a_figure_that_is_no_number_is_named_and_competes_with_nothing() -> None:
    good = measured(point(LLAMA, 1, 1), 10.0)
    seen = measurement(2, 9.0, 10.0)
    odd = replace(
        measured(point(LLAMA, 2, 2), 9.0),
        measurement=replace(seen, ttft_ms=replace(seen.ttft_ms, p90=math.nan)),
    )
    model = build([good, odd], empty_plan(), FACTS)
    assert [row.valid for row in model.rows] == [True, False]
    assert model.rows[1].faults == ("its P90 TTFT is nan",)
    assert "ttft_p90" not in model.rows[1].figures
    told = gate(model, "Points")
    assert told.items == (f"{odd.point.label}: ok, but its P90 TTFT is nan",)
    assert model.verdict.startswith("1 of 2 throughput points valid (1 without figures)")


def test_a_point_that_is_ok_without_a_measurement_is_named() -> None:
    model = build([record(point(LLAMA, 1, 1))], empty_plan(), FACTS)
    assert model.rows[0].faults == ("it has no measurement",)
    assert gate(model, "Points").level == "bad"
    assert model.charts[0].marks == ()


def test_every_pair_of_metrics_that_a_point_tells_has_a_chart() -> None:
    records = many_records(many_points(20), faults=False)
    model = build(records, many_plan(many_points(20)), FACTS)
    keys = [chart.key for chart in model.charts]
    assert keys[0] == DECIDING
    assert len(set(keys)) == len(keys) == 16  # four across, four up: no price is given
    priced = build_runs([run("a", records)], prices={"mi355x": PRICE})
    assert len(priced.charts) == 20
    cost = next(c for c in priced.charts if c.key == (DECIDING[0], "usd_per_m_tokens"))
    assert {m.row.record.point.arm.hardware for m in cost.marks} == {"mi355x"}
    # Less is better upwards: the frontier of cost falls as interactivity does.
    ys = [mark.y for marks in cost.frontiers.values() for mark in marks]
    assert ys
    assert ys == sorted(ys)


PRICE = Price(usd_gpu_hour=1.5, source="a list", as_of="2026-04", tier="rental")


def test_prices_and_energy_have_gates_with_their_source() -> None:
    records = many_records(many_points(20), faults=False)
    model = build_runs([run("a", records)], prices={"mi355x": PRICE})
    told = gate(model, "Cost")
    assert "$ per million tokens, at stated prices: nothing was billed." in told.sentence
    assert told.items == ("mi355x: 1.50 $/GPU/h (rental: a list, as of 2026-04)",)
    assert gate(model, "Energy").level == "good"
    assert "20 of 20 power logs cover their window" in gate(model, "Energy").sentence
    assert "Cost" not in [gate.name for gate in build_runs([run("a", records)]).gates]


def test_a_power_log_that_does_not_hold_says_why() -> None:
    made = measured(point(LLAMA, 1, 1), 10.0)
    log = Energy(source="nvidia-smi", gpus=1, window_s=10.0, reasons=("power-gap",))
    model = build([replace(made, energy=log)], empty_plan(), FACTS)
    told = gate(model, "Energy")
    assert (told.level, told.sentence) == ("note", "0 of 1 power log cover their window.")
    assert any("1 × power-gap" in item for item in told.items)
    assert "j_per_token" not in model.rows[0].figures


def test_failed_requests_stand_with_how_far_they_could_move_a_tail() -> None:
    from infx.domain.record import Bounds

    seen = measurement(4, 10.0, 10.0, errors=2)
    bound = Bounds(**{f"p{q}": (12.0, None if q == 99 else 14.0) for q in (50, 75, 90, 95, 99)})
    made = replace(
        measured(point(LLAMA, 4, 4), 10.0),
        measurement=replace(seen, error_bounds={"ttft_ms": bound}),
    )
    told = gate(build([made], empty_plan(), FACTS), "Errors")
    assert told.level == "note"
    assert told.sentence.startswith("40 requests in valid points, 2 failed, 0 cut at the end")
    assert told.items == (
        f"{made.point.label}: 2 of 40 failed (TimeoutError 2); p90 TTFT 12.0 to 14.0 ms",
    )


def test_evaluations_of_each_run_stand_apart() -> None:
    made = record(evaluation(LLAMA, 0.5), score=score(LLAMA, {"robust": 0.9}, 64, 0.5, 0.04))
    model = build_runs([run("a", [made]), run("b", [made])])
    assert [row.run for row in model.scores] == ["a", "b"]
    assert len({row.anchor for row in model.scores}) == 2
    assert [row.run for row in build([made], empty_plan(), FACTS).scores] == [""]


def test_ledgers_of_different_plans_add_up_each_and_together() -> None:
    first, second = many_points(20)[:10], many_points(20)[10:]
    runs = [
        run(name, many_records(points, run_id=name), many_plan(points))
        for name, points in (("a", first), ("b", second))
    ]
    model = build_runs(runs)
    assert model.candidates == sum(model.counts.values()) == 220
    assert gate(model, "Ledger").level == "good"
    broken = replace(runs[1], plan=replace(runs[1].plan, candidates=7))
    assert gate(build_runs([runs[0], broken]), "Ledger").level == "bad"
    # Two runs of one plan are counted once.
    again = run("c", many_records(first, run_id="c"), many_plan(first))
    assert build_runs([runs[0], again]).candidates == 110


def test_a_reused_point_names_the_run_it_is_from() -> None:
    made = measured(point(LLAMA, 1, 1), 10.0)
    made = replace(made, attempt=replace(made.attempt, run_id="an-older-run"))
    plan = sample_plan([made])
    reused = tuple(replace(c, disposition="reused") for c in plan.ledger[:1])
    model = build([made], replace(plan, ledger=(*reused, *plan.ledger[1:])), FACTS)
    assert model.rows[0].reused == "an-older-run"
    assert build([made], plan, FACTS).rows[0].reused == ""


def test_filters_are_of_what_differs_and_hold_every_row_once() -> None:
    records = many_records(many_points(200))
    model = build(records, many_plan(many_points(200)), FACTS)
    assert [found.name for found in model.filters] == [
        "TP", "mono", "KV dtype", "image", "verdict", "entry",
    ]  # fmt: skip
    anchors = sorted(row.anchor for row in model.rows)
    for found in model.filters:
        assert sorted(a for chosen in found.values.values() for a in chosen) == anchors
    assert build(records[:5], many_plan(many_points(5)), FACTS).filters == ()
