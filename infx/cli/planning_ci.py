"""What `infx ci plan` reads: an event, comments, two revisions, a store."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from infx.cli.revisions import forked, is_ahead, project_at, revision

if TYPE_CHECKING:
    from infx.changelog.entry import Changelog
    from infx.ci.decision import Change, CiPlan
    from infx.ci.events import PullRequestEvent
    from infx.ci.labels import LabelRules
    from infx.config.matrix import Matrix
    from infx.config.project import Project
    from infx.domain.findings import Finding
    from infx.domain.plan import Plan

__all__ = [
    "append_outputs",
    "bytes_of",
    "changelog_bytes",
    "check_head",
    "checked_changelog",
    "ci_plan",
    "label_rules",
    "matrix_of_all",
    "plan_of_all",
    "plan_of_base",
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


def plan_of_all(project: Project) -> Plan:
    """Return the plan of every matrix in the project's own configs/; a master configuration of
    InferenceX is none. Raises ConfigError with the faults of all."""
    from infx.plan.make import make_plan

    return make_plan(matrix_of_all(project))


def matrix_of_all(project: Project) -> Matrix:
    """Return what `plan_of_all` plans. Raises ConfigError with the faults of all files."""
    from infx.config.inferencex.recognise import is_master
    from infx.config.load import load_matrix
    from infx.config.project import CLUSTERS, HARDWARE

    paths = sorted((project.root / "configs").glob("*.yaml"))
    own = [path for path in paths if path.stem not in (CLUSTERS, HARDWARE) and not is_master(path)]
    return load_matrix(own, project)


def _change(base: str, head: str, event: PullRequestEvent, here: Project) -> Change:
    """Return what ``head`` changes since it parted from ``base``."""
    from infx.changelog.rules import additions
    from infx.ci.decision import Change

    commit = revision(head, here.root)
    check_head(event, head, commit, here.root)
    with project_at(forked(base, head, here.root), here) as old, project_at(commit, here) as new:
        before, findings = plan_of_base(old)
        text = changelog_bytes(old).decode("utf-8", "replace")
        changelog = checked_changelog(changelog_bytes(new), text, event.pull_request.html_url)
        return Change(
            base=before,
            head=plan_of_all(new),
            additions=additions(text, changelog),
            findings=findings,
            head_sha=commit,
        )


def check_head(event: PullRequestEvent, head: str, commit: str, folder: Path) -> None:
    """Raise UsageError ``bad-option`` where what is planned lacks the commit of the event, whose
    name it would be measured under. A merge may leave that commit behind."""
    from infx.domain.errors import UsageError

    told = event.pull_request.head.sha
    if told and not event.merges and is_ahead(told, commit, folder):
        sentence = f"--head {head} does not contain {told}, the event's last commit"
        hint = "hand over ${{ github.event.pull_request.head.sha }}"
        raise UsageError("bad-option", sentence, hint=hint)


def plan_of_base(project: Project) -> tuple[Plan, tuple[Finding, ...]]:
    """Return the plan of what a change began at; an empty one, and a warning that says why, where
    it cannot be planned any more."""
    from infx.config.matrix import Matrix
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding
    from infx.plan.make import make_plan

    try:
        return plan_of_all(project), ()
    except ConfigError as error:
        first = error.findings[0]
        sentence = f"the base cannot be planned, so every point counts as new: {first}"
        empty = make_plan(Matrix(entries=(), inputs={}))
        return empty, (Finding("base-unreadable", "warning", sentence, first.where),)


def checked_changelog(data: bytes, base: str, pr_link: str) -> Changelog:
    """Return the changelog. Raises ConfigError with every error of it."""
    from infx.changelog.entry import read_changelog
    from infx.changelog.rules import check
    from infx.cli.changelog import FILE
    from infx.domain.errors import ConfigError

    changelog = read_changelog(data, FILE)
    found = check(changelog, base=base, pr_link=pr_link)
    if faults := [finding for finding in found if finding.level == "error"]:
        raise ConfigError(faults)
    return changelog


def changelog_bytes(project: Project) -> bytes:
    """Return a project's changelog, empty where it has none."""
    from infx.cli.changelog import FILE

    path = project.root / FILE
    return path.read_bytes() if path.is_file() else b""


def bytes_of(path: Path) -> bytes:
    """Return a file's bytes. Raises UsageError ``bad-option`` where it cannot be read."""
    from infx.domain.errors import UsageError

    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError("bad-option", f"{path} cannot be read: {error.strerror}") from error
