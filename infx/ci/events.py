"""The parts of GitHub's events that are read; what GitHub adds beside them is ignored."""

from __future__ import annotations

from collections.abc import Sequence
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


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of which some fields are read, each of exactly the type said here."""


class Repository(_Part, frozen=True, kw_only=True):
    """A repository; ``full_name`` is ``owner/name``."""

    full_name: str


class Side(_Part, frozen=True, kw_only=True):
    """The head or the base of a pull request; ``repo`` is None for a fork that was deleted."""

    sha: str
    ref: str
    repo: Repository | None


class Label(_Part, frozen=True, kw_only=True):
    """A label of a pull request."""

    name: str


class PullRequest(_Part, frozen=True, kw_only=True):
    """A pull request as it was when the event was sent."""

    number: int
    state: Literal["open", "closed"]
    draft: bool
    html_url: str
    title: str
    body: str | None
    head: Side
    base: Side
    labels: tuple[Label, ...]


class PullRequestEvent(_Part, frozen=True, kw_only=True):
    """Event ``pull_request``: ``action`` is ``labeled``, ``synchronize``, …"""

    action: str
    number: int
    pull_request: PullRequest
    repository: Repository

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in GitHub's order."""
        return tuple(label.name for label in self.pull_request.labels)

    @property
    def is_of_fork(self) -> bool:
        """True when the head lies in another repository (or in one that is gone)."""
        head = self.pull_request.head.repo
        return head is None or head.full_name != self.repository.full_name


class User(_Part, frozen=True, kw_only=True):
    """Who wrote a comment."""

    login: str


class Comment(_Part, frozen=True, kw_only=True):
    """A comment of a pull request; ``created_at`` is ISO 8601 in UTC, so it sorts as text."""

    id: int
    body: str
    created_at: str
    html_url: str
    author_association: str
    user: User | None


def read_event(data: bytes, source: str = "event.json") -> PullRequestEvent:
    """Return an event of a pull request.

    Raises ConfigError (``bad-event``) that names the path of the fault: not JSON, another event,
    a part that is missing or of another type, or a number that is not the pull request's.
    """
    event = _decoded(data, PullRequestEvent, source)
    if event.number != event.pull_request.number:
        numbers = f"number {event.number} and pull_request.number {event.pull_request.number}"
        raise _bad(f"{numbers} differ", source)
    return event


def read_comments(data: bytes, source: str = "comments.json") -> Sequence[Comment]:
    """Return the comments of a pull request, as GitHub's REST interface lists them.

    Raises ConfigError (``bad-event``).
    """
    return _decoded(data, tuple[Comment, ...], source)


def _decoded(data: bytes, kind: type[T], source: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(str(error), source) from error


def _bad(fault: str, source: str) -> ConfigError:
    sentence = f"not what GitHub sends of a pull request: {fault}"
    hint = "hand over the file that GITHUB_EVENT_PATH names"
    return ConfigError([Finding("bad-event", "error", sentence, Where(source), hint)])
