"""What `infx ci plan` reads: an event, comments, two revisions, a store."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from infx.forge.planned import (
    changelog_bytes,
    check_head,
    checked_changelog,
    plan_of_all,
    plan_of_base,
)
from infx.forge.revisions import forked, is_known, project_at, revision

if TYPE_CHECKING:
    from infx.ci.decision import Change, CiPlan
    from infx.ci.events import PullRequestEvent
    from infx.ci.labels import LabelRules
    from infx.config.project import Project

__all__ = [
    "append_outputs",
    "bytes_of",
    "ci_plan",
    "label_rules",
]


def ci_plan(
    event: Path,
    base: str,
    head: str,
    comments: Path | None,
    labels: Path | None,
    results: Path | None,
) -> CiPlan:
    """Return what CI does for the event; where the event alone says that it is nothing, no revision
    is read. Raises ConfigError for what any of the files says wrong, UsageError for a file, a
    revision or a run that is not there."""
    from infx.ci.events import read_comments, read_event
    from infx.ci.plan import plan, settled
    from infx.cli.options import project
    from infx.cli.stored_runs import stored_runs

    read = read_event(bytes_of(event), str(event))
    said = read_comments(bytes_of(comments), str(comments)) if comments else ()
    rules = label_rules(labels)
    if early := settled(read, rules):
        return early
    change = _change(base, head, read, project())
    stored = stored_runs(results) if results else None
    return plan(read, change, rules, comments=said, stored=stored)


def append_outputs(values: Mapping[str, str], path: Path) -> None:
    """Add values to a file of outputs, as GitHub's runner reads it after the step. Raises
    UsageError ``bad-option`` where it cannot be written."""
    from infx.ci.outputs import output_lines
    from infx.domain.errors import UsageError

    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(output_lines(values))
    except OSError as error:
        raise UsageError("bad-option", f"cannot write {path}: {error.strerror}") from error


def label_rules(path: Path | None) -> LabelRules:
    """Return the rules in a file, or infx's own. Raises ConfigError."""
    from infx.ci.labels import read_rules
    from infx.config.nodes import Report, plain, read_yaml

    path = path or Path(str(files("infx.ci") / "data" / "labels.yaml"))
    report = Report()
    node, _ = read_yaml(path, str(path), report)
    report.check()
    return read_rules(plain(node) if node else None, str(path))


def _change(base: str, head: str, event: PullRequestEvent, here: Project) -> Change:
    """Return what ``head`` changes since it parted from ``base``."""
    from infx.changelog.rules import additions
    from infx.ci.decision import Change

    commit = revision(head, here.root)
    check_head(event, head, commit, here.root)
    told = event.pull_request.head.sha  # a recorded event may tell one that git never saw
    with project_at(forked(base, head, here.root), here) as old, project_at(commit, here) as new:
        before, findings = plan_of_base(old)
        text = changelog_bytes(old).decode("utf-8", "replace")
        changelog = checked_changelog(changelog_bytes(new), text, event.pull_request.html_url)
        return Change(
            base=before,
            head=plan_of_all(new),
            additions=additions(text, changelog),
            findings=findings,
            head_sha=told if told and is_known(told, here.root) else commit,
        )


def bytes_of(path: Path) -> bytes:
    """Return a file's bytes. Raises UsageError ``bad-option`` where it cannot be read."""
    from infx.domain.errors import UsageError

    try:
        return path.read_bytes()
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror}"
        raise UsageError("bad-option", text, hint="name a file that is there") from error
