"""Which points appear, vanish or change, and which field made it so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.ci.diff import compare, compare_points, differing, fields_of, identity
from infx.domain.identity import content_id
from infx.domain.point import Point
from tests.ci.cases import mini, plan_of, sessions
from tests.plan.matrices import eagle, evaluation, scenario

EAGLE = plan_of(
    mini(
        scenario(conc=[1, 2, 4], k=[1, 3], capture_sizes=[(8, 16)], max_num_seqs="=2*conc"),
        sessions(conc=[2, 8], k=3),
        speculation=eagle({1: 1.7, 3: 2.78}),
        options={"num-blocks": 256},
    )
)


def told(before: Point, after: Point) -> list[str]:
    return [str(field) for field in differing(before, after)]


def test_an_identity_is_what_the_planner_hashed() -> None:
    assert len(EAGLE.points) >= 8
    assert all(content_id(identity(point)) == point.point_id for point in EAGLE.points)


def test_equal_plans_have_no_difference() -> None:
    same = compare(EAGLE, EAGLE)
    assert (same.appeared, same.vanished, same.changed, same.points) == ((), (), (), ())
    assert same.same == EAGLE.points


def test_another_image_changes_every_point_and_says_so() -> None:
    before = plan_of(mini(image="pypi:infx==1.0"))
    after = plan_of(mini(image="pypi:infx==1.1"))
    found = compare(before, after)
    assert len(found.changed) == len(before.points) == len(after.points)
    fields = {str(field) for pair in found.changed for field in pair.fields}
    assert fields == {"image pypi:infx==1.0 → pypi:infx==1.1"}
    assert {point.entry for point in found.points} == {"mini"}


def test_points_appear_and_vanish() -> None:
    before = plan_of(mini(scenario(conc=[1, 2])))
    after = plan_of(mini(scenario(conc=[2, 4])))
    found = compare(before, after)
    assert [point.name for point in found.appeared] == ["mini-c4"]
    assert [point.name for point in found.vanished] == ["mini-c1"]
    assert [point.name for point in found.same] == ["mini-c2", "mini-eval-gsm_mini"]
    assert found.new_scenarios == {("mini", "64 in, 32 out")}


def test_a_point_is_known_again_when_its_name_is_another() -> None:
    """Another axis to tell points apart is in all their names."""
    before = plan_of(mini(scenario(conc=[1], tp=1), image="pypi:infx==1.0"))
    after = plan_of(mini(scenario(conc=[1], tp=[1, 2]), image="pypi:infx==1.1", heads=8))
    found = compare(before, after)
    timed = [pair for pair in found.changed if pair.after.mode == "throughput"]
    assert [(p.before.name, p.after.name) for p in timed] == [("mini-c1", "mini-c1-tp1")]
    assert {p.name for p in found.appeared if p.mode == "throughput"} == {"mini-c1-tp2"}


def test_the_same_workload_comes_before_another_of_its_kind() -> None:
    more = scenario(conc=[1], max_num_seqs=2, workload={"isl": 128})
    before = plan_of(mini(scenario(conc=[1], max_num_seqs=2), evaluations=()))
    after = plan_of(mini(scenario(conc=[1], max_num_seqs=3), more, evaluations=()))
    found = compare(before, after)
    [pair] = found.changed
    assert told(pair.before, pair.after) == ["axes.max-num-seqs 2 → 3"]
    assert [point.workload.words for point in found.appeared] == ["128 in, 32 out"]  # type: ignore[union-attr]


def test_where_two_would_fit_neither_is_taken() -> None:
    """Both servers of the base hold the place of the one that follows them."""
    before = plan_of(mini(scenario(conc=[1], max_num_seqs=[2, 4]), evaluations=()))
    after = plan_of(mini(scenario(conc=[1], max_num_seqs=[8]), evaluations=()))
    found = compare(before, after)
    assert (len(found.vanished), len(found.appeared), found.changed) == (2, 1, ())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"max_num_seqs": 8}, "axes.max-num-seqs 4 → 8"),
        ({"capture_sizes": (1, 2)}, "axes.capture-sizes - → [1, 2]"),
        ({"mono": "on"}, "axes.mono - → on"),
    ],
)
def test_an_axis_is_named(change: dict[str, object], field: str) -> None:
    [point, *_] = plan_of(mini(scenario(conc=[1], max_num_seqs=4))).points
    axes = replace(point.arm.axes, **change)
    assert told(point, replace(point, arm=replace(point.arm, axes=axes))) == [field]


def test_parts_of_lists_are_named() -> None:
    one, three = (next(p for p in EAGLE.points if p.arm.axes.k == k) for k in (1, 3))
    assert "acceptance.length 1.7 → 2.78" in told(one, three)
    assert "acceptance.k 1 → 3" in told(one, three)
    model = replace(one.arm.model, revision="abc")
    assert told(one, replace(one, arm=replace(one.arm, model=model))) == [
        "model.weights random:0 → abc"
    ]
    option = replace(one.arm, options={"num-blocks": 512})
    assert told(one, replace(one, arm=option)) == ["options.num-blocks 256 → 512"]


def test_a_field_of_the_workload_or_the_harness_is_named() -> None:
    scored = [plan_of(mini(evaluations=(evaluation(shots=n),))).points[-1] for n in (5, 8)]
    assert told(*scored) == ["workload.shots 5 → 8"]
    newer = replace(scored[0], harness=replace(scored[0].harness, aiperf="9"))
    assert told(scored[0], newer) == ["harness.aiperf 0.13.0 → 9"]


def test_fields_are_flat() -> None:
    names = fields_of(EAGLE.points[0])
    assert {"mode", "conc", "image", "method", "method.draft", "workload.isl"} <= set(names)


OTHER = plan_of(
    mini(
        scenario(conc=[1, 2, 4], k=[1, 3], max_num_seqs="=4*conc"),
        sessions(conc=[2, 8], k=[1, 3]),
        speculation=eagle({1: 1.7, 3: 2.9}),
    )
)
MORE = st.lists(st.sampled_from([*EAGLE.points, *OTHER.points]), unique_by=lambda p: p.point_id)


@given(MORE, MORE)
def test_every_point_is_accounted_for_once(base: list[Point], head: list[Point]) -> None:
    found = compare_points(base, head)
    before = [*found.vanished, *(pair.before for pair in found.changed), *found.same]
    after = [*found.appeared, *(pair.after for pair in found.changed), *found.same]
    assert sorted(p.point_id for p in before) == sorted(p.point_id for p in base)
    assert sorted(p.point_id for p in after) == sorted(p.point_id for p in head)
    assert all(pair.fields for pair in found.changed)
    assert all(pair.before.conc == pair.after.conc for pair in found.changed)


@given(MORE, MORE)
def test_a_difference_read_backwards_is_the_same(base: list[Point], head: list[Point]) -> None:
    there, back = compare_points(base, head), compare_points(head, base)
    assert {p.point_id for p in there.appeared} == {p.point_id for p in back.vanished}
    pairs = {(c.before.point_id, c.after.point_id) for c in there.changed}
    assert pairs == {(c.after.point_id, c.before.point_id) for c in back.changed}
