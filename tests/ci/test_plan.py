"""From an event and a change to jobs: a pure function."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.entry import Entry
from infx.ci.decision import CiPlan
from infx.ci.diff import identity
from infx.ci.events import Comment, PullRequestEvent, User, read_comments, read_event
from infx.ci.plan import plan, settled
from infx.ci.stored import Stored
from infx.config.matrix import AgenticSpec
from infx.domain.errors import ConfigError, UsageError
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Agentic
from infx.domain.serial import decode, encode
from infx.domain.status import Status
from tests.ci.cases import (
    EVENTS,
    RULES,
    TRACE,
    added,
    change,
    event,
    mini,
    names,
    origin,
    other,
    plan_of,
    sessions,
    stored,
)
from tests.plan.matrices import AT, LOCAL, eagle, scenario

HEAD = plan_of(mini(), other())
FULL = "full-sweep-enabled"


def planned(
    *labels: str,
    additions: tuple[Entry, ...] = (added("mini"),),
    head: Plan = HEAD,
    base: Plan = HEAD,
    **more: Any,
) -> CiPlan:
    return plan(event(*labels), change(head, *additions, base=base), RULES, **more)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("unlabeled", "no label asks"),
        ("draft", "a draft"),
        ("fork", "not a branch of this repository"),
        ("fork-deleted", "not a branch of this repository"),
        ("closed", "is closed"),
    ],
)
def test_events_that_run_nothing_say_why(name: str, reason: str) -> None:
    made = plan(event(name=name), change(HEAD, added("mini")), RULES)
    assert (made.decision, made.jobs, made.plan) == ("nothing", (), None)
    assert reason in made.reason


@pytest.mark.parametrize("name", ["unlabeled", "draft"])
def test_a_change_that_nobody_announced_is_told_without_a_label_too(name: str) -> None:
    made = plan(event(name=name), change(HEAD, added("mini")), RULES)
    assert [finding.code for finding in made.warnings] == ["change-unannounced"]


def test_contradicting_labels_are_an_error_whatever_changed() -> None:
    with pytest.raises(ConfigError, match="two-primaries"):
        plan(event(name="synchronize-two-primaries"), change(HEAD), RULES)


def test_a_key_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="key-unmatched"):
        planned(FULL, additions=(added("minni"),))


def test_what_is_selected_is_swept_and_the_rest_deferred() -> None:
    made = planned("full-sweep-fail-fast")
    assert made.decision == "sweep"
    assert names(made.plan) == [
        *("mini-agentic-c2", "mini-agentic-c8", "mini-c1", "mini-c4", "mini-eval-gsm_mini"),
    ]
    assert made.plan
    assert made.plan.counts == {"run": 5, "deferred": 5}
    assert (made.submission_valid, made.reusable) == (True, True)
    assert (made.settings and made.settings.fail_fast, made.warnings) == (True, ())


def test_no_added_entry_runs_nothing() -> None:
    made = planned(FULL, additions=(), base=plan_of())
    assert (made.decision, made.jobs) == ("nothing", ())
    assert made.reason == "no added changelog entry selects a point"
    assert [finding.code for finding in made.warnings] == ["change-unannounced"] * 2


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


def test_a_plan_that_no_run_can_measure_says_so_before_it_is_swept() -> None:
    elsewhere = other(cluster=replace(LOCAL, name="lab"))
    both = (added("mini"), added("other"))
    head = plan_of(mini(), elsewhere)
    [told] = planned(FULL, additions=both, head=head, base=head).warnings
    assert (told.code, told.level) == ("many-clusters", "warning")
    assert "is for local and lab: no run" in told.sentence
    assert not planned(FULL, head=head, base=head).warnings


def test_without_a_canary_jobs_stay_as_they_are() -> None:
    made = planned("non-canary-full-sweep-enabled")
    assert made.canaries == ()
    assert made.plan
    assert [j.job_id for j in made.jobs] == [
        j.job_id for j in HEAD.jobs if j.points[0].entry == "mini"
    ]


def test_evaluations_alone() -> None:
    made = planned(FULL, "evals-only")
    assert names(made.plan) == ["mini-eval-gsm_mini"]
    assert [c.scenario for c in made.canaries] == ["accuracy"]
    assert not made.reusable


def test_evaluations_at_every_point() -> None:
    head = plan_of(mini(scenario(conc=[1, 4], k=3), speculation=eagle({3: 2.78})))
    made = planned(FULL, "all-evals", head=head)
    assert made.plan
    scored = [point for point in made.plan.points if point.mode == "evaluation"]
    assert [(p.name, p.conc) for p in scored] == [
        *(("mini-eval-gsm_mini", 4), ("mini-eval-gsm_mini-c1", 1)),
    ]
    assert {point.arm.acceptance.mode for point in scored} == {"real"}
    assert all(content_id(identity(point)) == point.point_id for point in scored)
    assert made.plan.candidates == head.candidates + 1
    only = planned(FULL, "all-evals", "evals-only", head=head)
    assert {p.mode for job in only.jobs for p in job.points} == {"evaluation"}
    assert sum(len(job.points) for job in only.jobs) == 2


def test_a_label_that_changes_nothing_is_told() -> None:
    head = plan_of(mini(scenario(conc=[1]), evaluations=()))
    made = planned(FULL, "agentx-fast", "all-evals", head=head, base=head)
    assert [(f.code, f.sentence.partition(":")[0]) for f in made.warnings] == [
        ("label-idle", "all-evals"),
        ("label-idle", "agentx-fast"),
    ]


def test_fast_replays_are_marked_in_the_data() -> None:
    made = planned(FULL, "agentx-fast")
    assert (made.submission_valid, made.reusable) == (False, False)
    loads = [p.workload for p in made.plan.points if isinstance(p.workload, Agentic)]  # type: ignore[union-attr]
    assert [(w.duration_s, w.warmup_requests_per_lane) for w in loads] == [(1200, 1)] * 2
    assert not any(load.submission_valid for load in loads)
    assert made.plan
    again = decode(encode(made.plan), Plan)
    assert [p.workload.kind for p in again.points].count("agentic-fast") == 2
    whole = {p.point_id for p in HEAD.points if isinstance(p.workload, Agentic)}
    assert whole.isdisjoint(p.point_id for p in made.plan.points)
    assert all(content_id(identity(point)) == point.point_id for point in made.plan.points)


def test_what_is_measured_already_is_reused_and_linked() -> None:
    some = [p for p in HEAD.points if p.name in ("mini-c1", "mini-agentic-c2")]
    made = planned(FULL, stored=[stored(some)])
    assert names(made.plan) == ["mini-agentic-c8", "mini-c4", "mini-eval-gsm_mini"]
    assert made.plan
    assert made.plan.counts == {"run": 3, "deferred": 5, "reused": 2}
    rows = [row for row in made.plan.ledger if row.disposition == "reused"]
    assert {row.sentence for row in rows} == {"measured in run run-7"}
    assert made.runs == ("run-7",)
    assert made.reason == f"{FULL}: 3 points in 3 jobs, 2 reused"
    everything = planned(FULL, stored=[stored(HEAD.points)])
    assert (everything.decision, everything.jobs, everything.reuse) == ("reuse", (), None)
    assert everything.reason == "all 5 points are measured already, in run-7"
    assert everything.runs == ("run-7",)


def test_a_failed_point_or_one_of_elsewhere_is_measured() -> None:
    bad = stored(HEAD.points, states={"mini-c1": Status("failed", "oom")})
    assert names(planned(FULL, stored=[bad]).plan) == ["mini-c1"]
    for told in (origin(repository="another/lab"), origin(submission_valid=False)):
        elsewhere = stored(HEAD.points, origin=told)
        assert len(names(planned(FULL, stored=[elsewhere]).plan)) == 5


def test_a_shortened_sweep_stands_for_no_other_run() -> None:
    """Its whole points have identities of whole runs; its origin says what it is."""
    fast = planned(FULL, "agentx-fast")
    assert fast.plan
    assert fast.plan.origin
    told = replace(fast.plan.origin, head_sha="4b94f096")
    assert told == origin(submission_valid=False, reusable=False)
    run = stored(fast.plan.points, origin=fast.plan.origin)
    assert planned(FULL, stored=[run]).plan == planned(FULL).plan
    assert len(names(planned(FULL, "agentx-fast", stored=[run]).plan)) == 5
    alone = planned(FULL, "evals-only").plan
    assert alone
    assert alone.origin
    assert not alone.origin.reusable


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


COMMENTS = read_comments((EVENTS / "comments.json").read_bytes())


def test_a_comment_reuses_a_run_instead() -> None:
    made = planned(FULL, comments=COMMENTS)
    assert made.decision == "reuse"
    assert made.reuse
    assert (made.reuse.run, made.reuse.author) == ("37598205362", "reviewer")
    assert len(names(made.plan)) == 5
    assert (made.jobs, made.runs, made.faults) == ((), (), ())


def test_a_comment_names_a_run_that_is_held_to_what_is_planned() -> None:
    good = stored(HEAD.points, "37598205362")
    made = planned(FULL, comments=COMMENTS, stored=[good])
    assert (made.decision, made.runs, made.faults) == ("reuse", ("37598205362",), ())
    assert made.plan
    assert (made.plan.points, made.plan.counts) == ((), {"deferred": 5, "reused": 5})
    old = stored(plan_of(mini(image="pypi:infx==0.1")).points, "37598205362")
    made = planned(FULL, comments=COMMENTS, stored=[old, stored(HEAD.points)])
    assert (made.decision, made.runs) == ("reuse", ())
    [fault] = made.faults
    assert "image pypi:infx==0.1 → pypi:infx" in fault.sentence
    with pytest.raises(UsageError, match="no run 37598205362"):
        planned(FULL, comments=COMMENTS, stored=[stored(HEAD.points)])


def test_a_comment_reuses_nothing_where_nothing_is_selected() -> None:
    made = planned(FULL, additions=(), comments=COMMENTS, stored=[stored(HEAD.points)])
    assert (made.decision, made.runs) == ("nothing", ())


def written(action: str = "created", **comment: Any) -> PullRequestEvent:
    """The recorded event of a comment, with other fields of the comment."""
    data = json.loads((EVENTS / "commented.json").read_bytes())
    data["comment"] |= comment
    return read_event(json.dumps(data | {"action": action}).encode())


def heard(said: PullRequestEvent, **more: Any) -> CiPlan:
    return plan(
        said, replace(change(HEAD, added("mini"), base=HEAD), head_sha="abc"), RULES, **more
    )


def test_an_event_of_a_comment_reuses_the_run_that_it_names() -> None:
    made = heard(written(), stored=[stored(HEAD.points, "37598205362")])
    assert (made.decision, made.runs, made.head_sha) == ("reuse", ("37598205362",), "abc")


def test_the_latest_comment_counts_whichever_the_event_is_of() -> None:
    runs = [stored(HEAD.points, name) for name in ("37598205362", "37590000000")]
    first = written(id=101, created_at="2026-10-08T10:00:00Z", body="/reuse-sweep-run 37590000000")
    assert heard(first, stored=runs).runs == ("37590000000",)
    assert heard(first, stored=runs, comments=COMMENTS).runs == ("37598205362",)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (written(body="nice"), "holds no /reuse-sweep-run alone on a line"),
        (written(author_association="CONTRIBUTOR"), "reviewer (CONTRIBUTOR) may not reuse a run"),
        (written(author_association="NONE", user=None), "its author (NONE) may not"),
        (written("deleted"), "a comment was deleted"),
    ],
)
def test_a_comment_that_asks_for_nothing_runs_nothing(said: PullRequestEvent, reason: str) -> None:
    made = heard(said, stored=[stored(HEAD.points)])
    assert (made.decision, made.runs, made.plan) == ("nothing", (), None)
    assert reason in made.reason


def test_a_comment_never_starts_a_sweep() -> None:
    data = json.loads((EVENTS / "commented.json").read_bytes())
    for labels in ([], ["full-sweep-enabled", "evals-only"]):
        data["issue"]["labels"] = [{"name": label} for label in labels]
        made = heard(read_event(json.dumps(data).encode()), stored=[])
        assert (made.decision, made.jobs) == ("nothing", ())
    data["issue"]["state"] = "closed"
    assert "is closed" in heard(read_event(json.dumps(data).encode())).reason
    data["issue"]["state"] = "open"
    del data["issue"]["pull_request"]
    assert "is an issue" in heard(read_event(json.dumps(data).encode())).reason


def test_a_comment_is_not_followed_where_labels_forbid_it() -> None:
    made = planned(FULL, "agentx-fast", comments=COMMENTS)
    assert made.decision == "sweep"
    assert [(f.code, f.level) for f in made.warnings] == [("reuse-refused", "warning")]


def test_a_comment_of_a_stranger_is_nothing() -> None:
    stranger = Comment(
        id=1,
        body="/reuse-sweep-run",
        created_at="2026-10-08T00:00:00Z",
        html_url="https://github.com/example/lab/pull/17#issuecomment-1",
        author_association="CONTRIBUTOR",
        user=User(login="contributor"),
    )
    assert planned(FULL, comments=[stranger]).decision == "sweep"


LABELS = st.sets(st.sampled_from(["all-evals", "evals-only", "agentx-fast"]))
KEYS = st.lists(st.sampled_from(["mini", "other", "twin", "'*'"]), max_size=2, unique=True)
TWINS = plan_of(mini(), other(), mini(name="twin"))
STORED = st.sets(st.sampled_from([point.point_id for point in HEAD.points]))


@given(LABELS, KEYS, STORED, st.booleans())
def test_every_candidate_is_accounted_for(
    labels: set[str], keys: list[str], measured: set[str], new: bool
) -> None:
    made = planned(
        FULL,
        *labels,
        additions=tuple(added(key) for key in keys),
        head=TWINS,
        base=plan_of() if new else HEAD,
        stored=[stored(p for p in TWINS.points if p.point_id in measured)],
    )
    if made.plan is None:
        assert not made.jobs
        return
    assert sum(made.plan.counts.values()) == made.plan.candidates
    rows = Counter(row.disposition for row in made.plan.ledger)
    assert rows == Counter(made.plan.counts)
    jobs = sorted(point.point_id for job in made.plan.jobs for point in job.points)
    assert jobs == sorted(point.point_id for point in made.plan.points)
    assert jobs == sorted(row.point_id for row in made.plan.ledger if row.disposition == "run")
    assert measured.isdisjoint(jobs)
    assert bool(made.canaries) == bool(jobs)


NOISE = st.lists(st.sampled_from(["bug", "wontfix", "documentation", "performance"]))
ASKED = st.lists(
    st.sampled_from([*RULES.names, "my-sweep", "canary"]), min_size=1, max_size=3, unique=True
)


def outcome(labels: list[str]) -> object:
    try:
        return planned(*labels, stored=[stored(HEAD.points[:1])])
    except ConfigError as error:
        return error.findings


@given(ASKED, NOISE, st.data())
def test_order_repeats_and_other_labels_change_nothing(
    asked: list[str], noise: list[str], data: st.DataObject
) -> None:
    mixed = data.draw(st.permutations([*asked, *asked[:1], *noise]))
    assert outcome(mixed) == outcome(asked)


@given(st.permutations(COMMENTS), st.permutations([1, 2, 3]))
def test_order_of_comments_and_runs_changes_nothing(
    comments: list[Comment], ages: list[int]
) -> None:
    runs = [stored(HEAD.points[age:], f"run-{age}", float(age)) for age in ages]
    runs.append(stored(HEAD.points, "37598205362"))
    assert planned(FULL, comments=comments, stored=runs) == planned(
        FULL, comments=COMMENTS, stored=sorted(runs, key=lambda run: run.run_id)
    )
    assert planned(FULL, stored=runs[:3]) == planned(FULL, stored=runs[:3][::-1])


def many(image: str) -> Plan:
    """2,032 points like those of a public matrix: fixed lengths and sessions, two draft lengths."""
    concs = list(range(1, 64))
    two = (
        scenario(conc=concs, max_num_seqs="=2*conc", k=[1, 3]),
        sessions(conc=concs, k=[1, 3]),
    )
    law = eagle({1: 1.7, 3: 2.78})
    entries = (
        mini(*two, name=f"entry-{n}", weights=f"random:{n}", image=image, speculation=law)
        for n in range(8)
    )
    return plan_of(*entries)


@pytest.mark.slow
def test_thousands_of_points_are_planned_at_once() -> None:
    base, head = many("pypi:infx"), many("pypi:infx==2")
    assert len(head.points) > 2000
    began = time.process_time()
    made = planned(
        FULL, additions=(added("'*'"),), head=head, base=base, stored=[stored(base.points)]
    )
    assert time.process_time() - began < 2
    assert (len(made.canaries), sum(len(job.points) for job in made.jobs)) == (16, len(head.points))
