"""What git knows of a pull request: its commits, its diff, the files at its two ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infx.forge.revisions import forked, git, revision

if TYPE_CHECKING:
    from infx.review.bundle import Commit

__all__ = ["Branch", "branch_of"]

OWNERS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
"""Where GitHub looks for owners, in its order."""

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")


@dataclass(frozen=True, slots=True)
class Branch:
    """The commits between ``base`` and ``head`` (full hashes); ``fork`` is where they part.

    ``root`` is the repository's folder, ``folder`` the project's below it (``""`` or ``below/``).
    """

    root: Path
    folder: str
    base: str
    head: str
    fork: str

    def diff(self) -> str:
        """Return what changed since the fork, whatever the user's settings of git are."""
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "-U3")
        return self._text("diff", *_PLAIN, *prefixes, self.fork, self.head)

    def changed(self) -> tuple[str, ...]:
        """Return the paths that changed since the fork."""
        return self._paths("diff", *_PLAIN, "--name-only", "-z", self.fork, self.head)

    def commits(self) -> tuple[Commit, ...]:
        """Return the commits that the head has and the base has not, parents before children."""
        order = ("--topo-order", "--reverse", "--parents")
        lines = self._text("rev-list", *order, self.head, f"^{self.base}").splitlines()
        return tuple(self._commit(sha, parents) for sha, *parents in map(str.split, lines))

    def file(self, commit: str, path: str) -> str | None:
        """Return the text of a file of the repository at a commit, None where there is none."""
        found = git(self.root, "show", f"{commit}:{path}")
        return found.stdout.decode("utf-8", "replace") if not found.returncode else None

    def listed(self, commit: str, folder: str) -> tuple[str, ...]:
        """Return the paths of the files right below a folder (``a/b/``) at a commit."""
        return self._paths("ls-tree", "--name-only", "-z", "--full-tree", commit, "--", folder)

    def owners(self) -> str:
        """Return the CODEOWNERS that count: those of the base."""
        found = (self.file(self.base, path) for path in OWNERS)
        return next((text for text in found if text is not None), "")

    def _commit(self, sha: str, parents: list[str]) -> Commit:
        from infx.review.bundle import Commit

        if len(parents) == 2 and self._in_base(parents[1]):
            resolved = self._resolved(sha)
            return Commit(sha=sha, files=resolved or self._since(parents[0], sha),
                          merge=not resolved)  # fmt: skip
        return Commit(sha=sha, files=tuple(self._since_all(sha, parents)))

    def _in_base(self, commit: str) -> bool:
        return not git(self.root, "merge-base", "--is-ancestor", commit, self.base).returncode

    def _resolved(self, merge: str) -> tuple[str, ...]:
        """Return the paths in which a merge is not what git makes of its two sides by itself."""
        words = ("--remerge-diff", "--format=", "--no-color", "--name-only", "-z")
        return self._paths("show", *words, merge)

    def _since(self, before: str, after: str) -> tuple[str, ...]:
        return self._paths("diff-tree", "-r", *_PLAIN[3:], "--name-only", "-z", before, after)

    def _since_all(self, sha: str, parents: list[str]) -> Iterator[str]:
        """Yield the paths that differ from any parent: which side a measurement was on, nobody
        knows here."""
        if not parents:
            yield from self._paths("ls-tree", "-r", "--name-only", "-z", sha)
        yield from dict.fromkeys(path for parent in parents for path in self._since(parent, sha))

    def _paths(self, *words: str) -> tuple[str, ...]:
        return tuple(path for path in self._text(*words).split("\0") if path.strip())

    def _text(self, *words: str) -> str:
        return _said(self.root, *words)


def branch_of(folder: Path, base: str, head: str) -> Branch:
    """Return the branch between two revisions of the repository that ``folder`` is in. Raises
    UsageError ``bad-option`` where git does not know them, they have no commit in common, or the
    head adds none."""
    from infx.domain.errors import UsageError

    old, new = revision(base, folder), revision(head, folder)
    root = Path(_said(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    below = _said(folder, "rev-parse", "--show-prefix").rstrip("\n")
    fork = forked(old, new, folder)
    if new == fork:
        hint = "name base and head of the pull request"
        raise UsageError("bad-option", f"{head} adds no commit to {base}", hint=hint)
    return Branch(root=root, folder=below, base=old, head=new, fork=fork)


def _said(folder: Path, *words: str) -> str:
    """Return what git printed. Raises UsageError ``bad-option`` where it failed."""
    from infx.domain.errors import UsageError

    done = git(folder, *words)
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip()
        hint = "fetch what it lacks (a checkout of CI has one commit: fetch-depth: 0)"
        raise UsageError("bad-option", f"git {words[0]} failed: {told}", hint=hint)
    return done.stdout.decode("utf-8", "replace")
