"""Points that labels make: their identities are those of their content, whatever they came from."""

from __future__ import annotations

from dataclasses import replace

from infx.ci.diff import identity
from infx.ci.labels import Fast
from infx.ci.modifiers import evaluated, evaluations_at, shortened
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Point
from tests.ci.cases import mini, plan_of, sessions
from tests.plan.matrices import LOCAL, eagle, scenario


def everywhere(plan: Plan) -> list[Point]:
    """The evaluations of the plan, with those that all-evals adds."""
    timed = {point.point_id for point in plan.points if point.mode == "throughput"}
    whole = evaluated(plan, evaluations_at(plan, timed))
    return [point for point in whole.points if point.mode == "evaluation"]


def test_evaluations_at_every_point_lie_on_the_curve_of_the_planned_one() -> None:
    scores = everywhere(plan_of(mini(scenario(conc=[1, 2, 8], max_num_seqs="=2*conc"))))
    assert sorted(point.conc for point in scores) == [1, 2, 4, 8]
    assert len({point.point_id for point in scores}) == 4
    assert len({point.curve_id for point in scores}) == 1
    assert len({point.series_id for point in scores}) == 1


def test_servers_that_differ_have_curves_of_their_own() -> None:
    plan = plan_of(mini(scenario(conc=[1, 4], max_num_seqs=[8, 16])))
    scores = everywhere(plan)
    curves = {point.arm.axes.max_num_seqs: point.curve_id for point in scores}
    assert len(set(curves.values())) == 2
    assert all(point.curve_id == curves[point.arm.axes.max_num_seqs] for point in scores)


def test_an_evaluation_is_of_no_workload() -> None:
    """Two scenarios at one server ask for one evaluation, on one curve."""
    short = scenario(conc=[4], max_num_seqs="=2*conc")
    load = replace(short.workload, isl=128)
    both = everywhere(plan_of(mini(short, replace(short, workload=load))))
    alone = everywhere(plan_of(mini(short)))
    assert {p.point_id: p.curve_id for p in both} == {p.point_id: p.curve_id for p in alone}


def test_a_series_goes_on_under_another_image() -> None:
    arms = {"speculation": eagle({3: 2.78}), "cluster": LOCAL}
    old, new = (
        everywhere(plan_of(mini(scenario(conc=[1, 4], k=3), image=f"pypi:infx=={v}", **arms)))
        for v in ("1.0", "1.1")
    )
    assert {p.series_id for p in old} == {p.series_id for p in new}
    assert {p.curve_id for p in old}.isdisjoint(p.curve_id for p in new)


def test_short_replays_lie_on_one_curve_that_is_not_the_whole_ones() -> None:
    plan = plan_of(mini(sessions(conc=[2, 8], max_num_seqs="=2*conc")))
    fast = Fast(duration_s=60, warmup_requests_per_lane=1)
    short = [p for p in shortened(plan, fast).points if p.mode == "throughput"]
    whole = [p for p in plan.points if p.mode == "throughput"]
    for found in (short, whole):
        assert len(found) == 2
        assert len({point.curve_id for point in found}) == 1
    for name in ("point_id", "curve_id", "series_id"):
        assert {getattr(p, name) for p in short}.isdisjoint(getattr(p, name) for p in whole)
    assert all(point.point_id == content_id(identity(point)) for point in short)
