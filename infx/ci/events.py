"""The parts of GitHub's events that are read; what GitHub adds beside them is ignored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeVar

import msgspec

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = [
    "Comment",
    "Label",
    "PullRequest",
    "PullRequestEvent",
    "Repository",
    "Side",
    "User",
    "read_comments",
    "read_event",
]


T = TypeVar("T")

_EVENT = "hand over the file that GITHUB_EVENT_PATH names"
"""The next step for whoever handed over something else."""

_OTHERS = {
    "review": "a review of a pull request",
    "thread": "a thread of a review",
    "comment": "a comment on a diff",
    "workflow_run": "a workflow that ran",
    "workflow": "a workflow that was started",
    "schedule": "a schedule",
    "merge_group": "a merge queue",
    "check_run": "a check",
    "check_suite": "checks",
    "release": "a release",
    "pusher": "a push",
    "issue": "an issue",
}
"""What an event is that has a part of this name."""


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of which some fields are read, each of exactly the type said here."""


class Repository(_Part, frozen=True, kw_only=True):
    """A repository; ``full_name`` is ``owner/name``, ``default_branch`` "" where it is not told."""

    full_name: str
    default_branch: str = ""


class Side(_Part, frozen=True, kw_only=True):
    """The head or the base of a pull request; ``repo`` is None for a fork that was deleted."""

    sha: str
    ref: str
    repo: Repository | None


class Label(_Part, frozen=True, kw_only=True):
    """A label of a pull request."""

    name: str


class User(_Part, frozen=True, kw_only=True):
    """Who wrote a comment, or opened a pull request."""

    login: str


class Comment(_Part, frozen=True, kw_only=True):
    """A comment of a pull request; ``created_at`` is ISO 8601 in UTC, so it sorts as text."""

    id: int
    body: str
    created_at: str
    html_url: str
    author_association: str
    user: User | None


class PullRequest(_Part, frozen=True, kw_only=True):
    """A pull request as it was when the event was sent. What an event of a comment does not tell
    of it (its head and base) is empty."""

    number: int
    state: Literal["open", "closed"]
    draft: bool
    html_url: str
    title: str
    body: str | None
    head: Side
    base: Side
    labels: tuple[Label, ...]
    merged: bool | None = None
    merge_commit_sha: str | None = None
    user: User | None = None


class PullRequestEvent(_Part, frozen=True, kw_only=True):
    """Event ``pull_request``, or ``issue_comment`` of one: then ``comment`` is what was written.

    ``action`` is ``labeled``, ``synchronize``, ``closed``, …; of a comment ``created``, ``edited``
    or ``deleted``. ``is_of_issue``: the comment stands below an issue, which is no pull request.
    """

    action: str
    number: int
    pull_request: PullRequest
    repository: Repository
    comment: Comment | None = None
    is_of_issue: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in GitHub's order."""
        return tuple(label.name for label in self.pull_request.labels)

    @property
    def is_of_fork(self) -> bool:
        """True when the head lies in another repository (or in one that is gone); an event of a
        comment does not tell where it lies."""
        head = self.pull_request.head
        here = head.repo is not None and head.repo.full_name == self.repository.full_name
        return self.comment is None and not here

    @property
    def merges(self) -> bool:
        """True when the event is that the pull request was merged."""
        return self.action == "closed" and self.pull_request.merged is True


class _Link(_Part, frozen=True, kw_only=True):
    """Where an issue that is a pull request has its page."""

    html_url: str


class _Issue(_Part, frozen=True, kw_only=True):
    """What a comment stands below, as its event tells it."""

    number: int
    state: Literal["open", "closed"]
    html_url: str
    title: str
    body: str | None
    labels: tuple[Label, ...]
    pull_request: _Link | None = None
    draft: bool = False
    user: User | None = None


class _Commented(_Part, frozen=True, kw_only=True):
    """Event ``issue_comment``."""

    action: str
    issue: _Issue
    comment: Comment
    repository: Repository


def read_event(data: bytes, source: str = "event.json") -> PullRequestEvent:
    """Return an event of a pull request, or of a comment.

    Raises ConfigError (``bad-event``) that names the path of the fault: not JSON, another event,
    a part that is missing or of another type, or a number that is not the pull request's.
    """
    parts = _decoded(data, dict[str, msgspec.Raw], source)
    if "issue" in parts and "comment" in parts:
        return _of_comment(_decoded(data, _Commented, source))
    if "pull_request" not in parts or not parts.keys().isdisjoint(_OTHERS):
        raise _other(parts, source)
    event = _decoded(data, PullRequestEvent, source)
    if event.number != event.pull_request.number:
        numbers = f"number {event.number} and pull_request.number {event.pull_request.number}"
        raise _bad(f"{numbers} differ", source)
    return event


def _of_comment(said: _Commented) -> PullRequestEvent:
    issue, unknown = said.issue, Side(sha="", ref="", repo=None)
    request = PullRequest(
        number=issue.number,
        state=issue.state,
        draft=issue.draft,
        html_url=issue.pull_request.html_url if issue.pull_request else issue.html_url,
        title=issue.title,
        body=issue.body,
        head=unknown,
        base=unknown,
        labels=issue.labels,
        user=issue.user,
    )
    return PullRequestEvent(
        action=said.action,
        number=issue.number,
        pull_request=request,
        repository=said.repository,
        comment=said.comment,
        is_of_issue=issue.pull_request is None,
    )


def read_comments(data: bytes, source: str = "comments.json") -> Sequence[Comment]:
    """Return the comments of a pull request, as GitHub's REST interface lists them.

    Raises ConfigError (``bad-event``).
    """
    hint = "hand over the list that infx ci comments writes"
    return _decoded(data, tuple[Comment, ...], source, hint)


def _decoded(data: bytes, kind: type[T], source: str, hint: str = _EVENT) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(str(error), source, hint) from error


def _other(parts: Collection[str], source: str) -> ConfigError:
    what = next((text for name, text in _OTHERS.items() if name in parts), "something else")
    hint = "run this on the events pull_request and issue_comment; a merge is told by `closed`"
    return _bad(f"this is an event of {what}", source, hint)


def _bad(fault: str, source: str, hint: str = _EVENT) -> ConfigError:
    sentence = f"not what GitHub sends of a pull request: {fault}"
    return ConfigError([Finding("bad-event", "error", sentence, Where(source), hint)])
