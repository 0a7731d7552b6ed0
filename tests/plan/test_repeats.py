"""Repeats and turns are jobs, never candidates; what is measured once keeps its identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.errors import UsageError
from infx.domain.plan import Plan, marked
from infx.plan.make import make_plan
from infx.plan.repeats import interleaved, only, repeated, times_measured
from infx.plan.saved import read_plan, write_plan
from tests.plan.matrices import LOCAL, entry, evaluation, matrix, scenario

BOTH = ("off", "on")


def planned(*scenarios: Any, **fields: Any) -> Plan:
    return make_plan(matrix(entry(*scenarios, **fields)))


def arms(conc: Sequence[int] = (1, 2), **fields: Any) -> Plan:
    """Arms with and without mono, one server each for all concurrencies."""
    return planned(scenario(conc=list(conc), mono=list(BOTH)), **fields)


def turns(plan: Plan) -> list[tuple[str, int]]:
    return [(job.arm.axes.mono, job.repeat) for job in plan.jobs if job.group]


def measured(plan: Plan) -> Counter[str]:
    return Counter(point.point_id for job in plan.jobs for point in job.points)


def test_all_are_measured_once_before_any_is_measured_again() -> None:
    plan = arms()
    found = repeated(plan, 3)
    assert found.jobs[:2] == plan.jobs  # an older run of the plan is resumed by these
    assert [job.repeat for job in found.jobs] == [1, 1, 2, 2, 3, 3]
    assert [job.name for job in found.jobs[:4:2]] == [plan.jobs[0].name, f"{plan.jobs[0].name}-r2"]
    assert len({job.job_id for job in found.jobs}) == 6
    assert set(measured(found).values()) == {3}
    assert times_measured(found) == 3


def test_evaluations_are_measured_once_unless_they_are_asked_for() -> None:
    plan = arms(evaluations=(evaluation(),))
    once, again = repeated(plan, 2), repeated(plan, 2, evaluations=True)
    modes = {p.point_id: p.mode for p in plan.points}
    assert {measured(once)[p] for p in modes if modes[p] == "evaluation"} == {1}
    assert {measured(once)[p] for p in modes if modes[p] == "throughput"} == {2}
    assert set(measured(again).values()) == {2}
    assert all(job.points for job in once.jobs)


def test_the_ledger_counts_candidates_and_the_cost_counts_measurements() -> None:
    plan = arms()
    for found in (repeated(plan, 3), interleaved(plan, "mono", 2)):
        assert (found.candidates, found.counts, found.ledger) == (
            plan.candidates,
            plan.counts,
            plan.ledger,
        )
        assert found.points == plan.points
        assert found.cost.points == sum(measured(found).values())
        assert found.cost.jobs == len(found.jobs)
        assert found.cost.wall_s > plan.cost.wall_s


def test_arms_take_turns_first_and_last_as_often() -> None:
    assert turns(interleaved(arms(), "mono")) == [("off", 1), ("on", 1), ("on", 2), ("off", 2)]
    four = turns(interleaved(arms(), "mono", 4))
    assert [mono for mono, _ in four] == ["off", "on", "on", "off"] * 2
    assert [number for _, number in four] == [1, 1, 2, 2, 3, 3, 4, 4]


def test_three_arms_go_there_and_back() -> None:
    found = interleaved(planned(scenario(conc=1, tp=[1, 2, 4])), "tp")
    assert [job.arm.axes.tp for job in found.jobs] == [1, 2, 4, 4, 2, 1]
    assert len({job.group for job in found.jobs}) == 1


def test_each_pair_of_arms_is_a_group_of_its_own_and_stands_together() -> None:
    plan = planned(scenario(conc=[1, 2], mono=list(BOTH), max_num_seqs="=2*conc"))
    found = interleaved(plan, "mono")
    groups = [job.group for job in found.jobs]
    assert groups == [groups[0]] * 4 + [groups[4]] * 4
    assert groups[0] != groups[4]
    assert {job.arm.axes.max_num_seqs for job in found.jobs[:4]} == {2}
    assert not [f for f in found.findings if f.code == "no-partner"]


def test_what_has_no_partner_is_measured_once_after_the_groups_and_named() -> None:
    scenarios = scenario(conc=[1, 2], mono=list(BOTH)), scenario(conc=4, mono="on")
    plan = planned(*scenarios, evaluations=(evaluation(),))
    found = interleaved(plan, "mono")
    counts = measured(found)
    assert sorted(counts[p.point_id] for p in plan.points if p.mode == "throughput") == [
        1,
        *[2] * 4,
    ]
    assert {counts[p.point_id] for p in plan.points if p.mode == "evaluation"} == {1}
    assert [bool(job.group) for job in found.jobs[:5]] == [True] * 4 + [False]
    [finding] = [f for f in found.findings if f.code == "no-partner"]
    [alone] = [p for p in plan.points if p.conc == 4 and p.mode == "throughput"]
    assert finding.sentence.startswith("1 point has no partner that differs in mono alone: ")
    assert alone.label in finding.sentence


def test_evaluations_take_turns_too_when_asked() -> None:
    plan = arms(evaluations=(evaluation(),))
    found = interleaved(plan, "mono", evaluations=True)
    assert set(measured(found).values()) == {2}
    assert all(job.group for job in found.jobs)


@pytest.mark.parametrize(
    ("axis", "repeats", "text", "hint"),
    [
        ("tp", 2, "no two servers of the plan differ in it alone", "its values there: 1;"),
        ("mono", 3, "3 repeats cannot", "--repeats 2"),
        ("mono", 0, "0 repeats cannot", "--repeats 2"),
        ("mno", 2, "no axis of a server", "did you mean `mono`"),
        ("conc", 2, "no axis of a server", "mono"),
    ],
)
def test_what_cannot_take_turns_is_refused(axis: str, repeats: int, text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=text) as caught:
        interleaved(arms(), axis, repeats)
    assert caught.value.code == "bad-option"
    assert hint in caught.value.hint or axis == "conc"


def test_arms_that_differ_in_two_things_take_no_turns() -> None:
    seats = {"off": 2, "on": 4}
    plan = planned(*(scenario(conc=1, mono=m, max_num_seqs=n) for m, n in seats.items()))
    with pytest.raises(UsageError, match="differ in it alone") as caught:
        interleaved(plan, "mono")
    assert "off, on" in caught.value.hint


def test_a_saved_plan_keeps_its_turns(tmp_path: Path) -> None:
    found = interleaved(arms(), "mono", 4)
    write_plan(found, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == found


def test_one_point_stands_by_itself() -> None:
    plan = interleaved(arms(evaluations=(evaluation(),)), "mono")
    wanted = plan.points[1]
    alone = only(plan, wanted.point_id)
    assert (alone.points, alone.candidates, alone.inputs) == ((wanted,), 1, {})
    [job] = alone.jobs
    assert (job.points, job.repeat, job.group, job.cluster) == ((wanted,), 1, "", "local")
    assert [row.point_id for row in alone.ledger] == [wanted.point_id]
    assert alone.cost.points == 1


def test_one_point_on_another_cluster_is_the_same_point() -> None:
    plan = arms()
    there = replace(LOCAL, name="lab", limits=replace(LOCAL.limits, job=77))
    [job] = only(plan, plan.points[0].point_id, there).jobs
    assert (job.cluster, job.arm.cluster, job.time_limit_s) == ("lab", "lab", 77)
    assert job.points[0].point_id == plan.points[0].point_id
    assert job.points[0].arm == job.arm


def test_names_are_marked_from_the_second_time_on() -> None:
    assert [marked("a", n) for n in (1, 2, 10)] == ["a", "a-r2", "a-r10"]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3, unique=True),
    st.integers(1, 3).map(lambda n: 2 * n),
    st.booleans(),
)
def test_repeats_are_as_many_as_asked_and_nothing_is_lost(
    concs: list[int], repeats: int, by_load: bool
) -> None:
    extra = {"max_num_seqs": "=2*conc"} if by_load else {}
    plan = planned(scenario(conc=concs, mono=list(BOTH), **extra))
    for found in (repeated(plan, repeats), interleaved(plan, "mono", repeats)):
        assert set(measured(found)) == {p.point_id for p in plan.points}
        assert set(measured(found).values()) == {repeats}
        told = Counter((job.repeat, p.point_id) for job in found.jobs for p in job.points)
        assert set(told.values()) == {1}
        assert len({job.job_id for job in found.jobs}) == len(found.jobs)
    names = [job.group for job in interleaved(plan, "mono", repeats).jobs]
    assert all(names[n] == names[n + 1] for n in range(len(names) - 1) if (n + 1) % (2 * repeats))
