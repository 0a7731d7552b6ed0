"""Points measured several times: which repeats are pairs, and how a line's frontier changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis.compare import compare_axis, compare_runs
from infx.analysis.pairing import Seen
from infx.domain.identity import content_id
from infx.domain.status import OK, PENDING, Status
from tests.analysis.made_arms import arm_of, changes, mono, noisy, scored, seen
from tests.report.sample_runs import MINI, measurement, point

# Repeats


def in_turn(folder: Path, *factors: float, group: str = "mono-1", run: str = "r1") -> list[Seen]:
    """A B, B A, …: B is as much faster as ``factors`` say, on a machine that gets slower."""
    base = point(MINI, 1, 2)
    arms = []
    for repeat, factor in enumerate(factors, start=1):
        drift = 1 + repeat / 5
        pair = [
            arm_of(folder, mono(base, "off"), noisy(30, repeat, drift), run, repeat, group),
            arm_of(folder, mono(base, "on"), noisy(30, repeat, drift * factor), run, repeat, group),
        ]
        arms += pair if repeat % 2 else pair[::-1]
    return arms


def test_repeats_that_were_measured_in_turn_are_pairs(tmp_path: Path) -> None:
    found = compare_axis(in_turn(tmp_path, 0.80, 0.81, 0.79, 0.80), "mono")
    (told,) = found.points
    assert (told.comparison.basis, told.comparison.repeats) == ("repeats-paired", (4, 4))
    assert told.runs == ("r1",)
    assert told.comparison.requests == (120, 120)
    itl = changes(told.comparison)["itl_p50"]
    assert itl.ratio == pytest.approx(0.8, rel=1e-3)
    assert itl.verdict == "better"
    assert found.left_out == ()


def test_repeats_that_were_not_measured_in_turn_are_no_pairs(tmp_path: Path) -> None:
    found = compare_axis(in_turn(tmp_path, 0.80, 0.81, 0.79, 0.80, group=""), "mono")
    (told,) = found.points
    assert (told.comparison.basis, told.comparison.repeats) == ("repeats", (4, 4))
    assert changes(told.comparison)["itl_p50"].verdict == "no-difference-seen"


def test_repeats_of_several_runs_are_all_used(tmp_path: Path) -> None:
    seen_ = [*in_turn(tmp_path, 0.8, 0.8), *in_turn(tmp_path, 0.8, 0.8, run="r2")]
    (told,) = compare_axis(seen_, "mono").points
    assert (told.comparison.basis, told.comparison.repeats) == ("repeats-paired", (4, 4))
    assert told.runs == ("r1", "r2")


def test_a_repeat_that_failed_takes_its_partner_along(tmp_path: Path) -> None:
    arms = in_turn(tmp_path, 0.8, 0.8, 0.8, 0.8)
    arms[2] = replace(arms[2], status=Status("failed", "server-died", "killed"))
    found = compare_axis(arms, "mono")
    assert found.points[0].comparison.repeats == (3, 3)
    assert [(one.label, one.why) for one in found.left_out] == [
        (arms[3].label, f"its partner {arms[2].label} is failed:server-died"),
        (arms[2].label, "failed:server-died killed"),
    ]
    assert arms[2].label.endswith("-r2")


def test_a_repeat_without_a_partner_is_named(tmp_path: Path) -> None:
    arms = in_turn(tmp_path, 0.8, 0.8)[:-1]
    found = compare_axis(arms, "mono")
    assert found.points[0].comparison.basis == "requests-paired"
    assert [(one.label, one.why) for one in found.left_out] == [
        (arms[2].label, "not measured beside the other mono")
    ]


def test_a_part_that_was_tried_again_on_another_allocation_is_no_pair(tmp_path: Path) -> None:
    arms = in_turn(tmp_path, 0.8, 0.8, 0.8)
    arms[2] = allocated(arms[2], "tried-again")
    found = compare_axis(arms, "mono")
    assert found.points[0].comparison.repeats == (2, 2)
    assert {one.why for one in found.left_out} == {"not measured beside the other mono"}
    assert {one.label for one in found.left_out} == {arms[2].label, arms[3].label}


def allocated(one: Seen, batch: str) -> Seen:
    assert one.record
    attempt = replace(one.record.attempt, batch=batch)
    return replace(one, record=replace(one.record, attempt=attempt))


def test_two_runs_may_have_repeated_their_points(tmp_path: Path) -> None:
    """All of them count; a repeat that failed is alone left out, and pairs with nobody."""
    a = in_turn(tmp_path, 1, 1)
    b = [one for one in in_turn(tmp_path, 1, 1, 1, run="r2") if "-on-" in one.label]
    b[1] = replace(b[1], status=PENDING)
    found = compare_runs(a, b)
    (told,) = found.points
    assert (told.comparison.basis, told.comparison.repeats) == ("repeats", (2, 2))
    assert [(one.why, one.alone) for one in found.left_out] == [
        ("r2 has none to match", True), ("pending", False),
    ]  # fmt: skip
    b = [replace(one, status=PENDING) for one in b]
    found = compare_runs(a, b)
    assert found.points == ()
    assert [one.why for one in found.left_out[1:]] == [
        *["pending"] * 3, *["its partner in r2 is pending"] * 2,
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(
    sides=st.lists(
        st.tuples(
            st.sampled_from(["off", "on"]),
            st.sampled_from(["r1", "r2"]),
            st.integers(1, 3),
            st.sampled_from(["", "mono-1"]),
            st.booleans(),
        ),
        min_size=2,
        max_size=10,
        unique_by=lambda side: side[:3],
    ).filter(lambda sides: {side[0] for side in sides} == {"off", "on"})
)
def test_every_repeat_is_compared_or_named(
    sides: list[tuple[str, str, int, str, bool]],
) -> None:
    """Nothing is dropped without a word, whatever was repeated, grouped or failed. A pair that is
    left with one run a side has no export to read here, and is named as two."""
    arms = [
        replace(
            seen(
                mono(point(MINI, 1, 2), value),
                OK if good else Status("failed", "server-died"),
                run,
                measurement=measurement(1, 4.0, 20.0),
            ),
            repeat=repeat,
            group=group,
        )
        for value, run, repeat, group, good in sides
    ]
    found = compare_axis(arms, "mono")
    compared = sum(sum(told.comparison.repeats) for told in found.points)
    unread = sum(" and " in one.label for one in found.left_out)
    assert compared + len(found.left_out) + unread == len(arms)
    named = [(one.run_id, one.label) for one in found.left_out]
    assert len(set(named)) == len(named)


def test_evaluations_that_were_repeated_are_compared_one_by_one(tmp_path: Path) -> None:
    arms = []
    for repeat in (1, 2):
        pair = [scored(tmp_path / str(repeat), value, [True] * 20) for value in ("off", "on")]
        arms += [replace(one, repeat=repeat, group="mono-1") for one in pair]
    told = compare_axis(arms, "mono").scores
    assert [one.a.endswith("-r2") for one in told] == [False, True]


def test_an_evaluation_that_was_repeated_on_one_side_alone_is_named(tmp_path: Path) -> None:
    off, on = (scored(tmp_path, value, [True] * 20) for value in ("off", "on"))
    for arms in ([off, on, replace(on, repeat=2)], [off, replace(off, repeat=2), on]):
        found = compare_axis(arms, "mono")
        assert len(found.scores) == 1
        assert [(one.label[-3:], one.why) for one in found.left_out] == [
            ("-r2", "its partner was evaluated fewer times")
        ]


# Frontiers


def curve(folder: Path, value: str, factor: float, repeats: int = 1) -> list[Seen]:
    """Points that trade interactivity for throughput, of one latency a concurrency."""
    arms = []
    for conc in (1, 2, 4):
        of = mono(point(MINI, conc, 2 * conc), value)
        for repeat in range(1, repeats + 1):
            figures = measurement(conc, factor * (4 + conc) * (1 + repeat / 500), 20.0 * factor)
            side = seen(of, folder=folder, measurement=figures)
            arms.append(replace(side, repeat=repeat, group="g" if repeats > 1 else ""))
    return arms


def test_the_frontier_of_a_line_is_told_for_both_arms(tmp_path: Path) -> None:
    """Twice as fast on both axes is four times the area."""
    found = compare_axis(
        [*curve(tmp_path, "off", 1, repeats=2), *curve(tmp_path, "on", 0.5, repeats=2)], "mono"
    )
    (line,) = found.lines
    assert (line.workload, line.points) == ("64 in, 32 out", 3)
    assert (line.a.on, line.a.least, line.b.measured, line.b.invalid) == (3, 3, 3, 0)
    assert line.ratio == pytest.approx(4)
    assert line.low == pytest.approx(4)
    assert line.area[0] == pytest.approx(expected_area(curve(tmp_path, "off", 1.003)), rel=1e-2)


def expected_area(arms: list[Seen]) -> float:
    """The area under the steps, from the fastest point on."""
    told = [one.record.measurement for one in arms if one.record and one.record.measurement]
    points = sorted((m.e2e_interactivity_tok_s.p90, m.tput_tok_s_gpu) for m in told)
    edges = [0.0, *(x for x, _ in points)]
    return sum((x - edges[n]) * y for n, (x, y) in enumerate(points))


def test_the_frontier_of_single_runs_has_no_interval(tmp_path: Path) -> None:
    base = [point(MINI, conc, 2 * conc) for conc in (1, 2)]
    arms = [
        arm_of(tmp_path, mono(of, value), noisy(30, of.conc, factor))
        for of in base
        for value, factor in (("off", 1.0), ("on", 0.5))
    ]
    (line,) = compare_axis(arms, "mono").lines
    assert (line.low, line.high, line.a.least) == (None, None, None)
    assert line.ratio > 1


def test_repeats_that_are_no_pairs_give_a_frontier_without_an_interval(tmp_path: Path) -> None:
    arms = [*curve(tmp_path, "off", 1, repeats=2), *curve(tmp_path, "on", 0.5, repeats=2)]
    (line,) = compare_axis([replace(one, group="") for one in arms], "mono").lines
    assert (line.low, line.high, line.a.least) == (None, None, 3)


def test_lines_of_other_workloads_are_told_apart(tmp_path: Path) -> None:
    arms = []
    for isl in (64, 128):
        for one in [*curve(tmp_path, "off", 1, 2), *curve(tmp_path, "on", 0.5, 2)]:
            load = replace(one.point.workload, isl=isl)
            of = replace(one.point, workload=load, point_id=content_id([one.point.point_id, isl]))
            arms.append(replace(one, point=of, record=replace(one.record, point=of)))
    assert [line.workload for line in compare_axis(arms, "mono").lines] == [
        "64 in, 32 out", "128 in, 32 out",
    ]  # fmt: skip
