"""The entry of what the matrices plan otherwise than at a revision, before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.findings import Finding

__all__ = ["announced"]


def announced(base: str, pr_link: str) -> tuple[str, tuple[Finding, ...]]:
    """Return the entry of what changed since the working tree's branch parted from ``base``, and
    what was found while that was planned.

    Raises UsageError ``bad-option`` where nothing did, or git does not know ``base``; ConfigError
    for matrices that cannot be planned.
    """
    from infx.ci.announce import announcement
    from infx.ci.diff import compare
    from infx.ci.explain import explained
    from infx.cli.options import project
    from infx.domain.errors import UsageError
    from infx.forge.planned import plan_of_all, plan_of_base
    from infx.forge.revisions import forked, project_at

    here = project()
    with project_at(forked(base, "HEAD", here.root), here) as before:
        old, found = plan_of_base(before)
    new = plan_of_all(here)
    change = compare(old, new)
    lines = explained(change, old, new)
    if not lines:
        sentence = f"no planned point is otherwise than at {base}, so there is nothing to announce"
        raise UsageError("bad-option", sentence, hint="infx diff --base REV shows what changes")
    return announcement(change, lines, pr_link), found
