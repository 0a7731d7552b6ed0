"""Which points are compared with which, and why others are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.analysis.pairing import Seen, pair_axis, pair_runs
from infx.domain.errors import UsageError
from infx.domain.identity import content_id
from infx.domain.point import Point
from tests.analysis.made_arms import mono, seen
from tests.report.sample_runs import LLAMA, MINI, point


def both(conc: int) -> list[Seen]:
    return [seen(mono(point(MINI, conc, 2 * conc), value)) for value in ("on", "off")]


def test_points_that_agree_in_the_rest_are_pairs_and_the_default_comes_first() -> None:
    found = pair_axis([*both(1), *both(2)], "mono")
    assert [str(told) for pair in found.pairs for told in pair.differences] == ["mono off → on"] * 2
    assert [(p.a.point.conc, p.b.point.conc) for p in found.pairs] == [(1, 1), (2, 2)]
    assert found.left_out == ()


def test_a_point_without_a_partner_is_named() -> None:
    lonely = seen(mono(point(MINI, 4, 2, queueing=True), "off"))
    late = seen(mono(point(MINI, 8, 16), "on"))
    found = pair_axis([*both(1), lonely, late, seen(point(LLAMA, 1, 1))], "mono")
    assert len(found.pairs) == 1
    assert {one.label for one in found.left_out} == {
        lonely.point.label, late.point.label, point(LLAMA, 1, 1).label,
    }  # fmt: skip
    assert {one.why for one in found.left_out} == {
        "no point with another value of mono agrees with it in the rest",
        "no point with off of mono agrees with it in the rest",
    }


def test_an_axis_that_does_not_vary_names_those_that_do() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(point(MINI, c, 2 * c)) for c in (1, 2)] + both(1)[:1], "tp")
    assert caught.value.code == "axis-constant"
    assert caught.value.hint == "axes that do: mono, max-num-seqs, capture-sizes"


def test_where_no_axis_varies_two_runs_are_advised() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis(both(1)[:1], "mono")
    assert caught.value.hint == "no axis does: compare two runs, A and B"


def test_an_axis_that_takes_another_along_says_which() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(point(MINI, c, 2 * c)) for c in (1, 2)], "max_num_seqs")
    assert caught.value.code == "nothing-to-compare"
    assert caught.value.hint == "at one concurrency and workload it does not vary"
    first = point(MINI, 1, 2)
    other = replace(
        first,
        arm=replace(first.arm, axes=replace(first.arm.axes, max_num_seqs=4, capture_sizes=(9,))),
    )
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(first), seen(other)], "max_num_seqs")
    assert caught.value.hint == "where it varies, capture-sizes does too"


def test_k_takes_its_acceptance_along() -> None:
    first = point(MINI, 1, 2)
    arm = replace(first.arm, axes=replace(first.arm.axes, k=0), method="none")
    plain = replace(first, arm=replace(arm, acceptance=replace(arm.acceptance, mode="real")))
    found = pair_axis([seen(first), seen(plain)], "k")
    assert [str(told) for told in found.pairs[0].differences] == ["k 0 → 3"]


def test_k_takes_the_model_that_drafts_along() -> None:
    plain = point(MINI, 1, 2)
    drafting = replace(plain, arm=replace(plain.arm, method="eagle3", draft="made/drafter"))
    none = replace(plain.arm, axes=replace(plain.arm.axes, k=0), method="none")
    found = pair_axis([seen(replace(plain, arm=none)), seen(drafting)], "k")
    assert [str(told) for told in found.pairs[0].differences] == ["k 0 → 3"]


def test_a_third_value_is_compared_with_the_first_too() -> None:
    points = [point(MINI, 1, 2)] * 3
    arms = [
        replace(p.arm, axes=replace(p.arm.axes, tp=tp))
        for p, tp in zip(points, (2, 1, 4), strict=True)
    ]
    found = pair_axis(
        [seen(replace(p, arm=arm)) for p, arm in zip(points, arms, strict=True)], "tp"
    )
    assert [str(p.differences[0]) for p in found.pairs] == ["tp 1 → 2", "tp 1 → 4"]


def newer(of: Point) -> Point:
    return replace(of, arm=replace(of.arm, image="infx==2"), point_id=content_id([of.point_id]))


def test_two_runs_are_paired_by_what_they_are_asked() -> None:
    a = [seen(point(MINI, c, 2 * c)) for c in (1, 2, 4)]
    b = [seen(newer(point(MINI, c, 2 * c)), run="r2") for c in (4, 1, 8)]
    found = pair_runs(a, b)
    assert [(p.a.point.conc, p.b.point.conc) for p in found.pairs] == [(1, 1), (4, 4)]
    assert {str(told) for p in found.pairs for told in p.differences} == {"image infx → infx==2"}
    assert [(one.run_id, one.why) for one in found.left_out] == [
        ("r1", "r2 has none to match"), ("r2", "r1 has none to match"),
    ]  # fmt: skip


def test_the_nearest_servers_are_paired() -> None:
    """mono off and on in both: each with its like, whatever the order."""
    base = point(MINI, 1, 2)
    a = [seen(mono(base, value)) for value in ("off", "on")]
    b = [seen(newer(mono(base, value)), run="r2") for value in ("on", "off")]
    pairs = pair_runs(a, b).pairs
    assert [(p.a.point.arm.axes.mono, p.b.point.arm.axes.mono) for p in pairs] == [
        ("off", "off"),
        ("on", "on"),
    ]


def test_an_entry_of_both_runs_is_compared_with_itself_alone() -> None:
    """What it lost is no partner of what another gained; a renamed one still has its partners."""
    x1, x2 = (point(MINI, c, 2 * c) for c in (1, 2))
    y2 = replace(newer(x2), entry="y")
    found = pair_runs([seen(x1), seen(x2)], [seen(newer(x1), run="r2"), seen(y2, run="r2")])
    assert [(p.a.point.conc, p.b.point.entry) for p in found.pairs] == [(1, MINI)]
    assert [(one.run_id, one.alone) for one in found.left_out] == [("r1", True), ("r2", True)]
    (renamed,) = pair_runs([seen(x2)], [seen(y2, run="r2")]).pairs
    assert renamed.b.point.entry == "y"


def test_runs_of_other_workloads_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        pair_runs([seen(point(MINI, 1, 2))], [seen(point(LLAMA, 1, 2), run="r2")])
    assert caught.value.code == "nothing-to-compare"
    assert "the nearest two differ in model " in caught.value.hint


def test_runs_that_are_asked_almost_the_same_say_what_is_not() -> None:
    of = point(MINI, 1, 2)
    fewer = replace(of, workload=replace(of.workload, requests=3))
    with pytest.raises(UsageError) as caught:
        pair_runs(
            [seen(point(MINI, 4, 8)), seen(of)],
            [seen(replace(fewer, conc=2)), seen(fewer, run="r2")],
        )
    asked = of.workload.requests
    assert caught.value.hint.endswith(f"the nearest two differ in requests {asked} → 3")
