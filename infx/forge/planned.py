"""A project's plan and changelog, here or at a revision, and whether a revision is the event's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from infx.forge.revisions import is_ahead

if TYPE_CHECKING:
    from infx.changelog.entry import Changelog
    from infx.ci.events import PullRequestEvent
    from infx.config.matrix import Matrix
    from infx.config.project import Project
    from infx.domain.findings import Finding
    from infx.domain.plan import Plan

__all__ = [
    "changelog_bytes",
    "check_head",
    "checked_changelog",
    "matrix_of_all",
    "plan_of_all",
    "plan_of_base",
]


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
    from infx.changelog import FILE
    from infx.changelog.entry import read_changelog
    from infx.changelog.rules import check
    from infx.domain.errors import ConfigError

    changelog = read_changelog(data, FILE)
    found = check(changelog, base=base, pr_link=pr_link)
    if faults := [finding for finding in found if finding.level == "error"]:
        raise ConfigError(faults)
    return changelog


def changelog_bytes(project: Project) -> bytes:
    """Return a project's changelog, empty where it has none."""
    from infx.changelog import FILE

    path = project.root / FILE
    return path.read_bytes() if path.is_file() else b""


def check_head(event: PullRequestEvent, head: str, commit: str, folder: Path) -> None:
    """Raise UsageError ``bad-option`` where what is planned lacks the commit of the event, whose
    name it would be measured under. A merge may leave that commit behind."""
    from infx.domain.errors import UsageError

    told = event.pull_request.head.sha
    if told and not event.merges and is_ahead(told, commit, folder):
        sentence = f"--head {head} does not contain {told}, the event's last commit"
        hint = "hand over ${{ github.event.pull_request.head.sha }}"
        raise UsageError("bad-option", sentence, hint=hint)
