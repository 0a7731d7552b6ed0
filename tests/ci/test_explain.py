"""A difference in few lines: each point in one of them, with the reason that it has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.ci.diff import compare
from infx.ci.explain import explained
from infx.domain.plan import Plan
from tests.ci.cases import mini, plan_of, sessions
from tests.plan.matrices import evaluation, scenario


def told(base: Plan, head: Plan) -> list[tuple[str, list[str], str]]:
    lines = explained(compare(base, head), base, head)
    return [(line.what, [point.name for point in line.points], line.why) for line in lines]


def one(*scenarios: Any, **more: Any) -> Plan:
    return plan_of(mini(*scenarios, **{"evaluations": ()} | more))


ONE = one(scenario(conc=[1, 2]))


def test_nothing_is_told_of_equal_plans() -> None:
    assert told(ONE, ONE) == []


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (one(scenario(conc=[1, 2, 4])), (["mini-c4"], "conc 4")),
        (one(scenario(conc=[1, 2, 4, 8])), (["mini-c4", "mini-c8"], "conc 4, 8")),
        (
            one(scenario(conc=[1, 2]), sessions(conc=[2])),
            (
                ["mini-agentic-c2"],
                "the workload agentic semianalysis_cc_traces_weka_062126, 3600 s",
            ),
        ),
        (
            one(scenario(conc=[1, 2]), evaluations=(evaluation(),)),
            (["mini-eval-gsm_mini"], "the evaluation gsm_mini"),
        ),
        (
            plan_of(
                mini(scenario(conc=[1, 2]), evaluations=()), mini(scenario(conc=[16]), name="two")
            ),
            (["two-c16", "two-eval-gsm_mini"], "the entry"),
        ),
    ],
)
def test_what_is_new_and_what_is_gone_has_a_reason(head: Plan, line: tuple[list[str], str]) -> None:
    names, why = line
    assert told(ONE, head) == [("appears", names, f"new: {why}")]
    assert told(head, ONE) == [("vanishes", names, f"gone: {why}")]


def test_what_only_follows_the_concurrency_is_not_told_beside_it() -> None:
    base, head = (one(scenario(conc=some, max_num_seqs="=2*conc")) for some in ([1], [1, 4]))
    assert told(base, head) == [("appears", ["mini-c4"], "new: conc 4")]


def test_a_rule_that_leaves_a_point_out_is_named() -> None:
    ruled = one(scenario(conc=[1, 2], exclude=[("conc == 2", "hangs there")]))
    where = "(matrix.yaml:40:7)"
    assert told(ONE, ruled) == [("vanishes", ["mini-c2"], f"left out: hangs there {where}")]
    assert told(ruled, ONE) == [
        ("appears", ["mini-c2"], f"the base left it out: hangs there {where}")
    ]


def test_a_combination_may_be_what_is_new() -> None:
    base = one(scenario(conc=[1], max_num_seqs=[4]), scenario(conc=[2], max_num_seqs=[8]))
    head = one(scenario(conc=[1, 2], max_num_seqs=[4, 8]))
    [(what, names, why)] = told(base, head)
    assert (what, len(names)) == ("appears", 2)
    assert why == "new: the combination of conc 1 with max-num-seqs 8, conc 2 with max-num-seqs 4"


def test_changes_in_the_same_fields_are_one_line() -> None:
    base = one(scenario(conc=[1, 2], max_num_seqs="=2*conc"), image="pypi:infx==1.0")
    head = one(scenario(conc=[1, 2], max_num_seqs="=3*conc"), image="pypi:infx==1.1")
    assert told(base, head) == [
        (
            "changes",
            ["mini-c1", "mini-c2"],
            "image pypi:infx==1.0 → pypi:infx==1.1; axes.max-num-seqs 2 → 3, 4 → 6",
        )
    ]


CONCS = st.sets(st.integers(1, 6), min_size=1).map(sorted)
IMAGES = st.sampled_from(["pypi:infx==1.0", "pypi:infx==1.1"])


@given(CONCS, CONCS, IMAGES, IMAGES, st.booleans())
def test_each_point_that_differs_is_in_one_line(
    before: list[int], after: list[int], old: str, new: str, each: bool
) -> None:
    base, head = one(scenario(conc=before), image=old), one(scenario(conc=after), image=new)
    found = compare(base, head)
    lines = explained(found, base, head, each=each)
    points = sorted(point.point_id for line in lines for point in line.points)
    changed = (pair.after for pair in found.changed)
    assert points == sorted(p.point_id for p in (*found.appeared, *found.vanished, *changed))
    assert all(line.why for line in lines)
    assert all(len(line.points) == 1 for line in lines) or not each
