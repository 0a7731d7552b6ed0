"""Lines that mix no two workloads, and the frontiers that the North Star decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis.curves import line_frontiers, line_of, lines_of, priced
from infx.analysis.metrics import (
    METRICS,
    NORTH_STAR,
    THROUGHPUT,
    X_METRICS,
    Y_METRICS,
    Metric,
)
from infx.analysis.pareto import frontier
from infx.domain.identity import content_id
from infx.domain.point import Agentic, Point
from infx.domain.record import Energy, Measurement, PointRecord
from infx.domain.status import Status
from tests.report.sample_runs import LLAMA, MINI, evaluation, measurement, point, record, spread

DECIDING = (NORTH_STAR, THROUGHPUT)
ALL = [(x, y) for x in X_METRICS for y in Y_METRICS]
HARDWARE = point(MINI, 1, 2).arm.hardware


def figures(star: float, tput: float, **latencies: float) -> Measurement:
    """A measurement of these figures at p90; latencies in ms."""
    made = measurement(1, 10.0, 100.0)
    rate = replace(made.e2e_interactivity_tok_s, p90=star)
    parts = {name: replace(spread(value), p90=value) for name, value in latencies.items()}
    return replace(made, e2e_interactivity_tok_s=rate, tput_tok_s_gpu=tput, **parts)


def numbered(n: int, seen: Measurement, **parts: Any) -> PointRecord:
    of = replace(point(MINI, 1, 2), point_id=content_id([n]), conc=n + 1)
    return record(of, measurement=seen, **parts)


def of_workload(of: Point, **parts: Any) -> Point:
    return replace(of, workload=replace(of.workload, **parts))


# Lines


def test_what_follows_the_concurrency_stands_on_one_line() -> None:
    points = [point(MINI, conc, 2 * conc) for conc in (1, 2, 4)]
    assert len({of.workload for of in points}) == 3
    (line,) = lines_of(points)
    assert (line.entry, line.workload, line.apart([line])) == (MINI, "64 in, 32 out", "")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"isl": 128}, "128 in, 32 out"),
        ({"osl": 256}, "64 in, 256 out"),
        ({"seed": 8}, "seed 8"),
        ({"duration_s": 60}, "duration-s 60"),
    ],
)
def test_two_workloads_are_two_lines(parts: Mapping[str, Any], told: str) -> None:
    of = point(MINI, 1, 2)
    lines = lines_of([of, of_workload(of, **parts)])
    assert len(lines) == 2
    assert lines[1].apart(lines) == told


def test_what_a_point_is_judged_by_is_no_workload() -> None:
    of = point(MINI, 1, 2)
    assert line_of(of) == line_of(of_workload(of, error_share=0.2))


def test_sessions_that_are_changed_are_another_line() -> None:
    load = Agentic(trace="/t", content="a")
    of = [
        replace(point(LLAMA, 1, 1), workload=each)
        for each in (load, replace(load, trace="/u/t"), replace(load, idle_gap_cap_s=3))
    ]
    lines = lines_of(of)
    assert [line.apart(lines) for line in lines] == ["no idle-gap-cap-s", "idle-gap-cap-s 3"]


def test_other_hardware_and_precision_are_other_lines() -> None:
    of = point(MINI, 1, 2)
    other = replace(of, arm=replace(of.arm, hardware="h200"))
    rounded = replace(of, arm=replace(of.arm, model=replace(of.arm.model, precision="fp8")))
    lines = lines_of([of, other, rounded])
    assert [line.apart(lines) for line in lines] == [
        "precision fp32, hardware cpu-x86-2",
        "precision fp32, hardware h200",
        "precision fp8, hardware cpu-x86-2",
    ]


# Frontiers


def on(
    records: list[PointRecord], *pairs: tuple[Metric, Metric], **prices: float
) -> list[set[str]]:
    found = line_frontiers(records, pairs or [DECIDING], prices)
    return [{f"{x} {y}" for x, y in found.get(n, ())} for n in range(len(records))]


def test_another_x_shows_what_the_north_star_has_decided() -> None:
    """b has the best TTFT and is off: the North Star's frontier holds a and c alone."""
    records = [
        numbered(0, figures(10, 50, ttft_ms=90)),
        numbered(1, figures(8, 40, ttft_ms=10)),
        numbered(2, figures(5, 90, ttft_ms=95)),
    ]
    ttft = METRICS["ttft_p90"]
    deciding = "e2e_interactivity_p90 tput_tok_s_gpu"
    assert on(records, DECIDING, (ttft, THROUGHPUT)) == [
        {deciding, "ttft_p90 tput_tok_s_gpu"}, set(), {deciding, "ttft_p90 tput_tok_s_gpu"},
    ]  # fmt: skip
    worse = [*records, numbered(3, figures(4, 95, ttft_ms=80))]
    assert on(worse, (ttft, THROUGHPUT)) == [set(), set(), set(), {"ttft_p90 tput_tok_s_gpu"}]


def test_each_y_has_a_frontier_of_its_own() -> None:
    def drew(joules: float) -> Energy:
        return Energy(source="x", gpus=1, window_s=1, energy_j=1.0, j_per_total_token=joules)

    joules = METRICS["j_per_token"]
    records = [
        numbered(0, figures(10, 50), energy=drew(9)),
        numbered(1, figures(5, 90), energy=drew(10)),
        numbered(2, figures(4, 80), energy=drew(3)),
        numbered(3, figures(1, 10)),
    ]
    y = "e2e_interactivity_p90 tput_tok_s_gpu"
    e = "e2e_interactivity_p90 j_per_token"
    assert on(records, DECIDING, (NORTH_STAR, joules)) == [{y, e}, {y}, {e}, set()]


def test_cost_is_told_where_the_hardware_has_a_price() -> None:
    cost = METRICS["usd_per_m_tokens"]
    records = [numbered(0, figures(10, 50)), numbered(1, figures(5, 90))]
    assert on(records, (NORTH_STAR, cost)) == [set(), set()]
    assert (
        on(records, (NORTH_STAR, cost), **{HARDWARE: 1.48})
        == [{"e2e_interactivity_p90 usd_per_m_tokens"}] * 2
    )
    told = priced(records[1], {HARDWARE: 1.48})
    assert told is not None
    assert cost.of(told) == pytest.approx(1.48 / (90 * 3600 / 1e6))


def test_repeats_compete_as_one() -> None:
    """Twice 10 and 12 is 10.95: between what each of them would make of its rival."""
    twice = [numbered(0, figures(10, 50)), numbered(0, figures(12, 50))]
    rival = numbered(1, figures(11, 50))
    assert on([*twice, rival]) == [set(), set(), {"e2e_interactivity_p90 tput_tok_s_gpu"}]
    slower = numbered(1, figures(10.5, 50))
    assert [bool(keys) for keys in on([*twice, slower])] == [True, True, False]


def test_only_valid_throughput_points_compete() -> None:
    records = [
        numbered(0, figures(10, 50)),
        replace(numbered(1, figures(99, 99)), status=Status("invalid", "errors")),
        record(evaluation(MINI, 0.1)),
        replace(numbered(2, figures(99, 99)), measurement=None),
    ]
    assert [bool(keys) for keys in on(records)] == [True, False, False, False]


def test_no_frontier_holds_two_workloads() -> None:
    slow = numbered(0, figures(1, 1))
    longer = replace(slow, point=of_workload(slow.point, isl=128))
    mono = replace(slow.point.arm, axes=replace(slow.point.arm.axes, mono="on"))
    fused = replace(slow, point=replace(slow.point, arm=mono))
    best = numbered(1, figures(50, 50))
    assert [bool(keys) for keys in on([slow, best])] == [False, True]
    for other in (longer, fused):
        assert [bool(keys) for keys in on([other, best])] == [True, True]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(*[st.integers(1, 6).map(float)] * 3), min_size=1, max_size=12
    )
)  # fmt: skip
def test_all_pairs_follow_the_rule(places: list[tuple[float, float, float]]) -> None:
    records = [numbered(n, figures(a, b, ttft_ms=c)) for n, (a, b, c) in enumerate(places)]
    found = line_frontiers(records, ALL)
    deciding = set(frontier([(a, b) for a, b, _ in places], ("max", "max")))
    shown = set(frontier([(c, b) for _, b, c in places], ("min", "max")))
    for n in range(len(places)):
        keys = found.get(n, frozenset())
        assert ((NORTH_STAR.key, THROUGHPUT.key) in keys) is (n in deciding)
        assert (("ttft_p90", THROUGHPUT.key) in keys) is (n in deciding & shown)


def test_the_table_of_metrics_holds_each_key_once() -> None:
    """A key that two metrics had would let one shadow the other."""
    told = [*X_METRICS, *Y_METRICS]
    assert len({metric.key for metric in told}) == len(told)
    assert METRICS["e2el_p90"].unit == "s"
    assert [m.direction for m in X_METRICS] == ["max", "max", "min", "min"]
    seen = priced(numbered(0, figures(10, 50, e2el_ms=2000.0)))
    assert seen is not None
    assert METRICS["e2el_p90"].of(seen) == 2.0
    assert priced(record(evaluation(MINI, 0.1))) is None
