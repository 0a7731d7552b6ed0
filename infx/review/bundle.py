"""A bundle: everything that a review of one pull request needs, typed.

A folder, or an archive of one (.zip, .tar, .tar.gz). All files are UTF-8; `bundle.json` lists each
other one with its sha256, so that what is truncated or was changed since is seen.

    bundle.json         Manifest
    pull-request.json   PullRequest
    comments.json       [Comment]
    diff.patch          base … head, as git prints it
    CODEOWNERS          at the base
    entries.json        Entries, of every config at the base and at the head
    points.json         PlannedPoints of the affected entries, and of others that change, at both
    changelog.json      [Addition], the entries that the pull request adds
    runs.json           [Run]
    records.json        [PointRecord], of these runs
    drafts.json         [Draft]
    upstream.json       [UpstreamRecipe]
    golden/NAME.yaml    acceptance lengths, at the head
    head/PATH           any other file of the repository at the head: docs/waiver/NUMBER.md, recipes
    rules/NAME.yaml     rules of the reviewed repository at the base; those that lack are infx's own
    artifacts/RUN/PATH  evidence that the records of a run name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from infx.domain.record import PointRecord

__all__ = [
    "Addition",
    "Bundle",
    "CheckRun",
    "Comment",
    "Commit",
    "Draft",
    "DraftLayer",
    "Entries",
    "Entry",
    "Manifest",
    "PlannedPoint",
    "PlannedPoints",
    "PullRequest",
    "Run",
    "UpstreamRecipe",
]

Conclusion = Literal["success", "failure", "cancelled", "skipped", "pending"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """bundle.json. ``files`` maps each file to its sha256 (64 hex digits); ``note`` says what a
    reader of the data must know, as that values are made up. ``seal`` is the sha256 of the rest of
    the manifest, which `infx.review.writing` puts there."""

    schema_version: Literal["1"] = "1"
    repository: str
    pull_request: int
    base: str
    head: str
    files: Mapping[str, str]
    note: str = ""
    seal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of the pull request. ``merge``: it only brings the base branch in; ``files`` are the
    paths that it changes against its first parent, of a merge of anything else against any parent,
    and of a merge of the base that says more than its two sides those in which it does."""

    sha: str
    files: tuple[str, ...] = ()
    merge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """``commits`` go from the oldest to the head; ``changed`` are the paths of the whole diff."""

    number: int
    repository: str
    title: str
    body: str
    author: str
    commits: tuple[Commit, ...]
    changed: tuple[str, ...]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """``association`` is the author's with the repository, in GitHub's words."""

    id: str
    author: str
    association: str
    created_at: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a config. ``scenarios`` are kinds of workload (``agentic``, ``fixed-lengths``);
    ``files`` the paths of its config and recipe; ``version`` the engine's in the image."""

    key: str
    framework: str
    model_prefix: str
    precision: str
    hardware: str
    image: str
    image_digest: str = ""
    version: str = ""
    scenarios: tuple[str, ...]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The entries of the configs before the pull request and after it."""

    base: tuple[Entry, ...]
    head: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoint:
    """A throughput point of the plan: identities as in `infx.domain.point.Point`. ``scenario`` is
    its public name (`infx.ci.diff.scenario_type`), "" where it is not told."""

    entry: str
    name: str
    point_id: str
    series_id: str
    image: str
    scenario: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoints:
    """The points of the affected entries before the pull request and after it, and those of other
    entries that it gives points which were not there."""

    base: tuple[PlannedPoint, ...]
    head: tuple[PlannedPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """An entry that the pull request adds to the changelog; ``config_keys`` may hold ``*``."""

    config_keys: tuple[str, ...]
    description: tuple[str, ...]
    pr_link: str
    append_only: bool = False
    evals_only: bool = False
    all_evals: bool = False
    scenario_types: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One job of a run: what it did (``kind``) and how it ended."""

    name: str
    kind: Literal["throughput", "evaluation", "other"]
    conclusion: Conclusion


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A sweep of the repository's CI. ``submission_valid`` is False for shortened ones. ``reused``:
    its points stand for planned ones by their identity, and ``checks`` are of their jobs alone; it
    may be of another pull request of the repository."""

    run_id: str
    repository: str
    pull_request: int
    head_sha: str
    attempt: int
    conclusion: Conclusion
    checks: tuple[CheckRun, ...]
    submission_valid: bool = True
    reused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLayer:
    """The type that layers of a draft are stored in and the one that they run in."""

    name: str
    stored: str
    effective: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft as its checkpoint ships it and as the engine runs it. ``quantization`` is the
    checkpoint's own quantization, "" without one."""

    model: str
    stored: str
    quantization: str = ""
    layers: tuple[DraftLayer, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRecipe:
    """A recipe in the engine's own documentation for one entry."""

    entry: str
    url: str
    state: Literal["published", "merged", "open", "draft", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """All of it. ``golden``, ``head`` and ``rules`` map names of files to their texts (of `golden/`
    and `rules/` without the ending); ``artifacts`` are the paths under `artifacts/`."""

    manifest: Manifest
    pull_request: PullRequest
    comments: tuple[Comment, ...]
    diff: str
    codeowners: str
    entries: Entries
    points: PlannedPoints
    changelog: tuple[Addition, ...]
    runs: tuple[Run, ...]
    records: tuple[PointRecord, ...]
    drafts: tuple[Draft, ...] = ()
    upstream: tuple[UpstreamRecipe, ...] = ()
    golden: Mapping[str, str] = field(default_factory=dict)
    head: Mapping[str, str] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
