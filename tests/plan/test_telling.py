"""What tells points apart, in names and in curves."""

from __future__ import annotations

from typing import Any

from infx.plan.make import make_plan
from infx.plan.telling import computed, differing, named, varied
from tests.plan.matrices import entry, matrix, scenario


def plan_of(*scenarios: Any) -> Any:
    return make_plan(matrix(entry(*scenarios)))


def test_scenarios_are_told_apart_by_the_axes_they_say_differently() -> None:
    plan = plan_of(scenario(conc=[1, 2], tp=1), scenario(conc=[1], tp=2))
    assert [p.name for p in plan.points] == ["mini-c1-tp1", "mini-c2-tp1", "mini-c1-tp2"]


def test_one_scenario_repeats_nothing_in_its_names() -> None:
    plan = plan_of(scenario(conc=[1, 2], tp=1))
    assert [p.name for p in plan.points] == ["mini-c1", "mini-c2"]


def test_the_axes_of_a_scenario() -> None:
    one = scenario(conc=[1, 2], tp=1, mono="='on' if conc == 1 else 'off'")
    other = scenario(conc=[1, 2], tp=2)
    assert differing([one, other]) == {"tp", "mono"}
    assert differing([one]) == frozenset()
    assert varied(one) == ("conc",)
    assert varied(one, {"tp"}) == ("conc", "tp")
    assert computed(one, {"tp"}) == ("tp", "mono")
    assert named(one) == ("conc", "tp", "mono")


def test_offload_is_told_where_there_is_any() -> None:
    rule = {"conc": 4, "kv_offload": "dram", "kv_offload_backend": "lmcache", "kv_offload_gb": 8}
    made = scenario(include=[rule], conc=[1])
    assert varied(made) == (
        *("conc", "kv_offload", "kv_offload_backend"),
        "kv_offload_gb",
    )
    plan = make_plan(matrix(entry(made, framework="vllm", weights="hf:a/b", image="pypi:vllm==1")))
    assert [p.name for p in plan.points] == ["mini-c1", "mini-c4-dram-lmcache-8gb"]


def test_an_axis_that_follows_is_one_curve_where_it_has_its_default_too() -> None:
    plan = plan_of(scenario(conc=[1, 2, 4], mono="='on' if conc <= 2 else 'off'"))
    assert [p.arm.axes.mono for p in plan.points] == ["on", "on", "off"]
    assert len({p.curve_id for p in plan.points}) == 1
    assert len({p.point_id for p in plan.points}) == 3
