"""Which points go first: the cheapest of what changed."""

from __future__ import annotations

from dataclasses import replace

from tests.ci.cases import (
    FULL,
    HEAD,
    added,
    mini,
    other,
    plan_of,
    planned,
    sessions,
    stored,
)
from tests.plan.matrices import LOCAL, scenario


def test_the_canary_is_the_cheapest_of_the_scenario_that_changed() -> None:
    """Sessions take an hour and fixed lengths seconds: those alone that changed decide."""
    longer = mini(scenario(conc=[1, 4]), sessions(conc=[2, 4, 8]))
    shorter = mini(scenario(conc=[1, 4]), sessions(conc=[4, 8]))
    made = planned(FULL, head=plan_of(longer), base=plan_of(shorter))
    assert [(c.scenario, c.label[:-9]) for c in made.canaries] == [("agentic", "mini-agentic-c2")]
    assert made.jobs[0].job_id == made.canaries[0].job_id
    assert [point.name for point in made.jobs[0].points] == ["mini-agentic-c2"]
    fixed = mini(scenario(conc=[1, 2, 4]), sessions(conc=[4, 8]))
    made = planned(FULL, head=plan_of(fixed), base=plan_of(shorter))
    assert [c.scenario for c in made.canaries] == ["fixed-lengths"]


def test_the_canary_is_of_the_lengths_that_changed() -> None:
    """Shorter ones are cheaper, but say nothing of the change."""
    long = {"isl": 512, "osl": 64}
    before = mini(scenario(conc=[1, 2]), scenario(conc=[4], workload=long))
    after = mini(scenario(conc=[1, 2]), scenario(conc=[4, 8], workload=long))
    made = planned(FULL, head=plan_of(after), base=plan_of(before))
    [canary] = made.canaries
    [first] = made.jobs[0].points
    assert (canary.point_id, first.conc) == (first.point_id, 4)
    assert getattr(first.workload, "isl", 0) == 512


def test_shortened_sessions_have_the_canary_of_what_changed_too() -> None:
    longer = mini(scenario(conc=[1, 4]), sessions(conc=[2, 4, 8]))
    shorter = mini(scenario(conc=[1, 4]), sessions(conc=[4, 8]))
    made = planned(FULL, "agentx-fast", head=plan_of(longer), base=plan_of(shorter))
    assert [(c.scenario, c.label[:-9]) for c in made.canaries] == [
        ("agentic-fast", "mini-agentic-fast-c2")
    ]


def test_an_agentic_change_alone_has_a_canary() -> None:
    head = plan_of(mini(sessions(conc=[4, 1, 8])))
    made = planned(FULL, head=head, base=plan_of())
    assert [c.label[:-9] for c in made.canaries] == ["mini-agentic-c1"]


def test_each_entry_and_scenario_that_is_new_has_a_canary() -> None:
    made = planned(FULL, additions=(added("mini other"),), base=plan_of())
    assert [(c.entry, c.scenario) for c in made.canaries] == [
        *(("mini", "fixed-lengths"), ("mini", "agentic")),
        *(("other", "fixed-lengths"), ("other", "agentic")),
    ]


def test_each_entry_has_the_canary_of_what_changed_in_it() -> None:
    """Sessions of one entry, fixed lengths of another, both of a third that is new."""
    their = {"name": "other", "weights": "random:other"}
    before = (
        mini(scenario(conc=[1, 4]), sessions(conc=[8])),
        mini(scenario(conc=[4]), sessions(conc=[2, 8]), **their),
    )
    after = (
        mini(scenario(conc=[1, 4]), sessions(conc=[4, 2, 8])),
        mini(scenario(conc=[2, 4]), sessions(conc=[2, 8]), **their),
        other("third"),
    )
    every = added("mini other third")
    made = planned(FULL, additions=(every,), head=plan_of(*after), base=plan_of(*before))
    assert [(c.entry, c.label[:-9]) for c in made.canaries] == [
        ("mini", "mini-agentic-c2"),
        ("other", "other-c2"),
        ("third", "third-c1"),
        ("third", "third-agentic-c2"),
    ]
    assert [job.job_id for job in made.jobs[:4]] == [c.job_id for c in made.canaries]
    assert made.plan
    assert made.plan.canaries == tuple(c.job_id for c in made.canaries)


def test_a_point_that_is_reused_is_no_canary() -> None:
    cheapest = [point for point in HEAD.points if point.name == "mini-c1"]
    made = planned(FULL, base=plan_of(other()), stored=[stored(cheapest)])
    assert [c.label[:-9] for c in made.canaries] == ["mini-c4", "mini-agentic-c2"]


def test_a_canary_is_cheap_in_accelerators_too() -> None:
    cluster = replace(LOCAL, gpus_per_node=8, hardware="cpu")
    entry = mini(sessions(conc=[1], tp=[4, 1]), cluster=cluster, evaluations=())
    made = planned(FULL, head=plan_of(entry))
    assert [job.arm.axes.tp for job in made.jobs] == [1, 4]


def test_without_a_canary_jobs_stay_as_they_are() -> None:
    made = planned("non-canary-full-sweep-enabled")
    assert made.canaries == ()
    assert made.plan
    assert [j.job_id for j in made.jobs] == [
        j.job_id for j in HEAD.jobs if j.points[0].entry == "mini"
    ]
