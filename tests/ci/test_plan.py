"""From an event and a change to jobs: a pure function."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.ci.diff import identity
from infx.ci.events import Comment
from infx.ci.plan import plan
from infx.domain.errors import ConfigError
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Agentic
from infx.domain.serial import decode, encode
from infx.domain.status import Status
from tests.ci.cases import (
    COMMENTS,
    FULL,
    HEAD,
    RULES,
    added,
    change,
    event,
    mini,
    names,
    origin,
    other,
    plan_of,
    planned,
    sessions,
    stored,
)
from tests.plan.matrices import LOCAL, eagle, scenario


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


def test_a_plan_that_no_run_can_measure_says_so_before_it_is_swept() -> None:
    elsewhere = other(cluster=replace(LOCAL, name="lab"))
    both = (added("mini"), added("other"))
    head = plan_of(mini(), elsewhere)
    [told] = planned(FULL, additions=both, head=head, base=head).warnings
    assert (told.code, told.level) == ("many-clusters", "warning")
    assert "is for local and lab: no run" in told.sentence
    assert not planned(FULL, head=head, base=head).warnings


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
