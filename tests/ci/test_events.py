"""Events as GitHub sends them, and everything else refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infx.ci.events import read_comments, read_event
from infx.domain.errors import ConfigError
from tests.ci.cases import EVENTS


def test_a_recorded_event_is_read() -> None:
    event = read_event((EVENTS / "labeled.json").read_bytes())
    assert (event.action, event.number, event.is_of_fork) == ("labeled", 17, False)
    assert event.labels == ("bug", "full-sweep-fail-fast")
    assert event.pull_request.head.sha.startswith("4b94f096")


@pytest.mark.parametrize("name", ["fork", "fork-deleted"])
def test_the_head_of_a_fork_is_told(name: str) -> None:
    assert read_event((EVENTS / f"{name}.json").read_bytes()).is_of_fork


def broken(**changes: Any) -> bytes:
    data = json.loads((EVENTS / "labeled.json").read_bytes())
    for path, value in changes.items():
        *above, last = path.split("__")
        place = data
        for name in above:
            place = place[name]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "truncated"),
        ((EVENTS / "labeled.json").read_bytes()[:900], "truncated"),
        (b"\xff\xfe", "malformed"),
        (b'{"extra":' + b"[" * 100_000, "recursion"),
        (b"[]", "Expected `object`"),
        ((EVENTS / "push.json").read_bytes(), "an event of a push"),
        (b'{"action": "submitted", "review": {}, "pull_request": {}}', "a review"),
        (b'{"action": "created", "comment": {}, "pull_request": {}}', "a comment on a diff"),
        (b'{"workflow": "x.yml", "inputs": null}', "a workflow that was started"),
        (b'{"schedule": "0 0 * * *"}', "a schedule"),
        (b'{"action": "opened", "issue": {}}', "an issue"),
        (b"{}", "something else"),
        (broken(pull_request__merged="yes"), "$.pull_request.merged"),
        (broken(pull_request__labels=None), "labels"),
        (broken(pull_request__labels=["x"]), "$.pull_request.labels[0]"),
        (broken(pull_request__draft="false"), "$.pull_request.draft"),
        (broken(pull_request__head__sha=7), "$.pull_request.head.sha"),
        (broken(pull_request__state="merged"), "$.pull_request.state"),
        (broken(repository=None), "repository"),
        (broken(number=18), "number 18 and pull_request.number 17 differ"),
    ],
)
def test_a_malformed_event_is_refused_where_it_is_wrong(data: bytes, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_event(data, "event.json")
    [found] = caught.value.findings
    assert (found.code, caught.value.exit_code) == ("bad-event", 2)
    assert fault in found.sentence
    assert str(found.where) == "event.json"


def test_a_merge_is_told() -> None:
    assert read_event((EVENTS / "merged.json").read_bytes()).merges
    assert not read_event((EVENTS / "closed.json").read_bytes()).merges
    data = json.loads((EVENTS / "merged.json").read_bytes())
    assert not read_event(json.dumps(data | {"action": "labeled"}).encode()).merges


def test_a_comment_is_read_with_what_it_tells_of_its_pull_request() -> None:
    event = read_event((EVENTS / "commented.json").read_bytes())
    assert (event.action, event.number, event.is_of_fork, event.is_of_issue) == (
        *("created", 17, False),
        False,
    )
    assert event.comment
    assert event.comment.body.endswith("/reuse-sweep-run 37598205362\r\n")
    assert event.labels == ("full-sweep-enabled",)
    assert event.pull_request.html_url == "https://github.com/example/lab/pull/17"
    assert event.pull_request.head.sha == ""
    data = json.loads((EVENTS / "commented.json").read_bytes())
    del data["issue"]["pull_request"]
    assert read_event(json.dumps(data).encode()).is_of_issue
    data["comment"] = {}
    with pytest.raises(ConfigError, match=r"\$\.comment"):
        read_event(json.dumps(data).encode())


def test_an_event_of_something_else_says_which_are_read() -> None:
    with pytest.raises(ConfigError, match="run this on the events pull_request and issue_comment"):
        read_event((EVENTS / "push.json").read_bytes())


def test_comments_are_read_strictly() -> None:
    data = (EVENTS / "comments.json").read_bytes()
    assert [comment.id for comment in read_comments(data)] == [101, 103, 102, 104]
    with pytest.raises(ConfigError, match=r"\$\[0\]") as caught:
        read_comments(b'[{"id": 1}]')
    assert "infx ci comments" in caught.value.findings[0].hint
