"""What a merged pull request publishes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from infx.ci.decision import CiPlan
from infx.ci.events import read_event
from infx.ci.plan import plan, settled
from infx.ci.stored import Stored
from infx.config.matrix import AgenticSpec
from infx.domain.status import Status
from tests.ci.cases import (
    COMMENTS,
    EVENTS,
    FULL,
    HEAD,
    RULES,
    TRACE,
    added,
    change,
    event,
    mini,
    origin,
    plan_of,
    planned,
    sessions,
    stored,
)
from tests.plan.matrices import AT, eagle, scenario

MERGED = event(name="merged")


OWN = AgenticSpec(trace=TRACE, duration_s=60, where=AT)


"""Sessions too short to be published."""


def merged(*runs: Stored, **more: Any) -> CiPlan:
    return plan(MERGED, change(HEAD, added("mini"), base=HEAD), RULES, stored=runs, **more)


def test_a_merge_publishes_the_run_that_measured_all_that_is_selected() -> None:
    made = merged(stored(HEAD.points, "older", 1.0), stored(HEAD.points, "newer", 2.0))
    assert (made.decision, made.runs, made.faults, made.jobs) == ("publish", ("newer",), (), ())
    assert made.reason == "pull request 17 is merged: 5 points that it selects, measured in newer"


def test_a_run_of_the_pull_request_is_published_before_others() -> None:
    mine = stored(HEAD.points, "mine", 1.0, origin=origin())
    theirs = stored(HEAD.points, "theirs", 2.0, origin=origin(3))
    assert merged(theirs, mine).runs == ("mine",)
    [comment] = [c for c in COMMENTS if c.id == 103]
    named = replace(theirs, run_id="37598205362")
    assert merged(named, mine, comments=[comment]).runs == ("37598205362",)


def test_several_runs_are_published_together() -> None:
    timed = [point for point in HEAD.points if point.mode == "throughput"]
    scored = [point for point in HEAD.points if point.mode == "evaluation"]
    made = merged(stored(timed, "timed", 1.0), stored(scored, "scored", 2.0))
    assert made.runs == ("timed", "scored")


def test_a_merge_that_was_not_measured_says_what_lacks() -> None:
    bad = {"mini-c1": Status("failed", "oom"), "mini-c4": Status("invalid", "acceptance-off")}
    made = merged(stored(HEAD.points, "mine", origin=origin(), states=bad))
    assert (made.decision, made.runs) == ("publish", ())
    assert made.reason == "pull request 17 is merged: no run has measured 2 of its 5 points"
    assert {(fault.code, fault.level) for fault in made.faults} == {("not-measured", "error")}
    first, *why = (fault.sentence for fault in made.faults)
    assert first.startswith("mini has no valid measurement of mini-c1-")
    assert [text.split(": ")[1] for text in why] == [
        *("it ended failed:oom there", "it ended invalid:acceptance-off there"),
    ]
    older = plan_of(mini(image="pypi:infx==0.1"))
    differs = merged(stored(older.points, "mine", origin=origin())).faults
    assert any("image pypi:infx==0.1 → pypi:infx" in fault.sentence for fault in differs)
    assert len(merged().faults) == 1


@pytest.mark.parametrize(
    "told",
    [origin(repository="another/lab"), origin(reusable=False), origin(submission_valid=False)],
)
def test_what_may_not_be_reused_is_not_published(told: Any) -> None:
    assert merged(stored(HEAD.points, origin=told)).runs == ()


def test_a_run_that_is_not_published_says_why() -> None:
    label = "its labels asked for what stands for no other run"
    run = stored(HEAD.points, "mine", origin=origin(reusable=False))
    assert [fault.sentence for fault in merged(run).faults][1:] == [
        f"run mine is not published: {label}"
    ]


def test_what_a_run_took_from_another_is_published_with_it() -> None:
    first, *others = HEAD.points
    source = stored([first], "source", 1.0, origin=origin(3))
    taker = stored(others, "taker", 2.0, origin=origin())
    made = merged(source, replace(taker, reused={first.point_id: "source"}))
    assert made.runs == ("source", "taker")
    assert made.plan
    assert {one.run_id for one in made.plan.reused} == {"taker", "source"}
    assert [one.point.name for one in made.plan.reused if one.run_id == "source"] == [first.name]


def shown(made: CiPlan) -> dict[str, str]:
    assert made.plan
    assert made.plan.points == ()
    assert sum(made.plan.counts.values()) == made.plan.candidates
    return {one.point.name: one.run_id for one in made.plan.reused}


def test_what_is_published_replaces_the_curves_of_its_entries_and_no_others() -> None:
    """Runs hold more than is selected: points of other entries, points that are gone again."""
    gone = plan_of(mini(scenario(conc=[64]))).points
    made = merged(stored([*HEAD.points, *gone], "mine", origin=origin()))
    assert set(shown(made)) == {point.name for point in HEAD.points if point.entry == "mini"}


def test_what_is_appended_is_published_with_what_stands() -> None:
    before, after = (plan_of(mini(scenario(conc=concs))) for concs in ([1, 2], [1, 2, 4]))
    [new] = [point for point in after.points if point.name == "mini-c4"]
    runs = [stored(before.points, "old", 1.0, origin=origin(3)), stored([new], "new", 2.0)]
    found = change(after, added("mini", append_only=True), base=before)
    made = plan(MERGED, found, RULES, stored=runs)
    assert shown(made) == {
        **dict.fromkeys(("mini-c1", "mini-c2", "mini-eval-gsm_mini"), "old"),
        "mini-c4": "new",
    }
    assert made.runs == ("old", "new")
    assert made.reason.endswith(
        ": 1 point that it selects and 3 more of its entries, measured in old and new"
    )
    alone = plan(MERGED, found, RULES, stored=runs[1:])
    assert shown(alone) == {"mini-c4": "new"}


def test_evaluations_everywhere_are_published_where_they_were_asked_for() -> None:
    head = plan_of(mini(scenario(conc=[1, 4], k=3), speculation=eagle({3: 2.78})))
    swept = planned(FULL, "all-evals", head=head).plan
    assert swept
    found = change(head, added("mini", all_evals=True), base=head)
    made = plan(MERGED, found, RULES, stored=[stored(swept.points)])
    assert set(shown(made)) == {point.name for point in swept.points}
    assert len(swept.points) == len(head.points) + 1


def test_what_is_not_valid_for_submission_is_not_published() -> None:
    head = plan_of(mini(replace(sessions(conc=[1]), workload=OWN), evaluations=()))
    made = plan(MERGED, change(head, added("mini")), RULES, stored=[stored(head.points)])
    assert (made.decision, made.runs, made.submission_valid) == ("nothing", (), False)
    assert "not valid for submission" in made.reason
    both = plan_of(
        mini(scenario(conc=[1]), replace(sessions(conc=[1]), workload=OWN), evaluations=())
    )
    fixed = added("mini", scenario_type=["fixed-seq-len"])
    beside = plan(MERGED, change(both, fixed, base=both), RULES, stored=[stored(both.points)])
    assert set(shown(beside)) == {"mini-c1"}


def test_labels_do_not_matter_any_more_once_merged() -> None:
    data = json.loads((EVENTS / "merged.json").read_bytes())
    for labels in ([], ["evals-only"], ["full-sweep-enabled", "agentx-fast", "sweep-it"]):
        data["pull_request"]["labels"] = [{"name": label} for label in labels]
        late = read_event(json.dumps(data).encode())
        found = change(HEAD, added("mini"), base=HEAD)
        assert plan(late, found, RULES, stored=[stored(HEAD.points)]).runs == ("run-7",)


def test_a_merge_that_selects_nothing_publishes_nothing() -> None:
    made = plan(MERGED, change(HEAD, base=HEAD), RULES, stored=[stored(HEAD.points)])
    assert (made.decision, made.runs) == ("nothing", ())


def test_a_merge_into_another_branch_publishes_nothing() -> None:
    data = json.loads((EVENTS / "merged.json").read_bytes())
    data["pull_request"]["base"]["ref"] = "next"
    made = settled(read_event(json.dumps(data).encode()), RULES)
    assert made
    assert made.reason == "it was merged into next: what is on main is published"
