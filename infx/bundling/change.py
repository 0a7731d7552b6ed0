"""What a pull request changes: its branch, the matrices at both ends, its changelog entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.forge.branch import Branch, branch_of

if TYPE_CHECKING:
    from infx.changelog.entry import Entry
    from infx.ci.events import PullRequestEvent
    from infx.config.matrix import Matrix
    from infx.config.project import Project
    from infx.domain.findings import Finding
    from infx.domain.plan import Plan

__all__ = ["BundledChange", "Side", "branch_named", "change_of", "rules_of"]

RULES = "configs/review"
"""Where a repository keeps rules of its own, below the project's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A project at one end of the branch: what its matrices say, and their plan."""

    matrix: Matrix
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledChange:
    """``before`` is where the branch parts from its base, ``after`` its head. ``additions`` are the
    changelog entries that it adds, ``goldens`` the texts of the golden files at the head, and
    ``findings`` what was found of the base."""

    before: Side
    after: Side
    additions: tuple[Entry, ...]
    goldens: Mapping[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The entries at the head that the added changelog entries name."""
        entries = self.after.matrix.entries
        return tuple(e.name for e in entries if any(one.selects(e.name) for one in self.additions))


def branch_named(base: str, head: str, event: PullRequestEvent, here: Project) -> Branch:
    """Return the branch between two revisions, "" being the event's own.

    Raises UsageError ``bad-option`` for an event that tells none, for a head that lacks the
    event's, and for what git does not know.
    """
    from infx.domain.errors import UsageError
    from infx.forge.planned import check_head

    told = event.pull_request
    base, head = base or told.base.sha, head or told.head.sha
    if not base or not head:
        hint = "name them with --base and --head"
        raise UsageError("bad-option", "an event of a comment tells no base and no head", hint=hint)
    branch = branch_of(here.root, base, head)
    check_head(event, head, branch.head, here.root)
    return branch


def change_of(branch: Branch, here: Project, link: str) -> BundledChange:
    """Return what the branch changes of the project; ``link`` is the pull request's address.

    Raises ConfigError for a head that cannot be planned, or whose changelog is faulty.
    """
    from infx.changelog.rules import additions
    from infx.forge.planned import changelog_bytes, checked_changelog
    from infx.forge.revisions import project_at

    with project_at(branch.fork, here) as old, project_at(branch.head, here) as new:
        before, findings = _old_side(old)
        text = changelog_bytes(old).decode("utf-8", "replace")
        changelog = checked_changelog(changelog_bytes(new), text, link)
        return BundledChange(
            before=before,
            after=_side(new),
            additions=additions(text, changelog),
            goldens=_goldens(new),
            findings=findings,
        )


def _side(project: Project) -> Side:
    from infx.forge.planned import matrix_of_all
    from infx.plan.make import make_plan

    matrix = matrix_of_all(project)
    return Side(matrix=matrix, plan=make_plan(matrix))


def _old_side(project: Project) -> tuple[Side, tuple[Finding, ...]]:
    """Return the side of the base; an empty one, and why, where it cannot be planned any more."""
    from infx.config.matrix import Matrix
    from infx.domain.errors import ConfigError
    from infx.domain.findings import Finding
    from infx.plan.make import make_plan

    try:
        return _side(project), ()
    except ConfigError as error:
        first = error.findings[0]
        sentence = f"the base cannot be planned, so every entry counts as new: {first}"
        empty = Matrix(entries=(), inputs={})
        found = Finding("base-unreadable", "warning", sentence, first.where)
        return Side(matrix=empty, plan=make_plan(empty)), (found,)


def _goldens(project: Project) -> dict[str, str]:
    paths = {name: project.golden_path(name) for name in project.goldens()}
    return {name: path.read_text("utf-8") for name, path in paths.items() if path}


def rules_of(branch: Branch) -> dict[str, str]:
    """Return the texts of the repository's own rules at the base: no pull request changes what it
    is judged by."""
    found = branch.listed(branch.base, f"{branch.folder}{RULES}/")
    paths = {path.rsplit("/", 1)[-1]: path for path in found if path.endswith(".yaml")}
    texts = {name: branch.file(branch.base, path) or "" for name, path in paths.items()}
    return {name.removesuffix(".yaml"): text for name, text in texts.items()}
