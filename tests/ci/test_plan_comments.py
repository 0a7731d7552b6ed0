"""What a comment asks to reuse, and whose comments count."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from infx.ci.decision import CiPlan
from infx.ci.events import Comment, PullRequestEvent, User, read_event
from infx.ci.plan import plan
from infx.domain.errors import UsageError
from tests.ci.cases import (
    COMMENTS,
    EVENTS,
    FULL,
    HEAD,
    RULES,
    added,
    change,
    mini,
    names,
    plan_of,
    planned,
    stored,
)


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
