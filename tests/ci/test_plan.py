"""From an event and a change to jobs: a pure function."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.entry import Entry
from infx.ci.diff import identity
from infx.ci.events import Comment, User, read_comments
from infx.ci.plan import CiPlan, plan
from infx.domain.errors import ConfigError
from infx.domain.identity import content_id
from infx.domain.plan import Plan
from infx.domain.point import Agentic
from infx.domain.serial import decode, encode
from tests.ci.cases import (
    EVENTS,
    RULES,
    added,
    change,
    event,
    mini,
    names,
    other,
    plan_of,
    sessions,
)
from tests.plan.matrices import LOCAL, eagle, scenario

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
    assert [finding.code for finding in made.warnings] == ["label-idle"] * 2


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
    stored = {p.point_id: "run-7" for p in HEAD.points if p.name in ("mini-c1", "mini-agentic-c2")}
    made = planned(FULL, stored=stored)
    assert names(made.plan) == ["mini-agentic-c8", "mini-c4", "mini-eval-gsm_mini"]
    assert made.plan
    assert made.plan.counts == {"run": 3, "deferred": 5, "reused": 2}
    rows = [row for row in made.plan.ledger if row.disposition == "reused"]
    assert {row.sentence for row in rows} == {"measured in run run-7"}
    everything = planned(FULL, stored={p.point_id: "run-7" for p in HEAD.points})
    assert (everything.decision, everything.jobs) == ("nothing", ())
    assert everything.reason == "all 5 points are measured already"


COMMENTS = read_comments((EVENTS / "comments.json").read_bytes())


def test_a_comment_reuses_a_run_instead() -> None:
    made = planned(FULL, comments=COMMENTS)
    assert made.decision == "reuse"
    assert made.reuse
    assert (made.reuse.run, made.reuse.author) == ("37598205362", "reviewer")
    assert len(names(made.plan)) == 5


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
    labels: set[str], keys: list[str], stored: set[str], new: bool
) -> None:
    made = planned(
        FULL,
        *labels,
        additions=tuple(added(key) for key in keys),
        head=TWINS,
        base=plan_of() if new else HEAD,
        stored=dict.fromkeys(stored, "run"),
    )
    if made.plan is None:
        assert not made.jobs
        return
    assert sum(made.plan.counts.values()) == made.plan.candidates
    rows = Counter(row.disposition for row in made.plan.ledger)
    assert rows == Counter(made.plan.counts)
    measured = sorted(point.point_id for job in made.plan.jobs for point in job.points)
    assert measured == sorted(point.point_id for point in made.plan.points)
    assert measured == sorted(row.point_id for row in made.plan.ledger if row.disposition == "run")
    assert stored.isdisjoint(measured)
    assert bool(made.canaries) == bool(measured)
