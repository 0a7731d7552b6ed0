"""A project as it is at a revision of git: its files in a folder of their own."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.config.project import Project

__all__ = ["forked", "git", "is_ahead", "is_known", "project_at", "revision", "text_at"]


def revision(rev: str, folder: Path) -> str:
    """Return the full hash of a commit. Raises UsageError ``bad-option`` where git knows none in
    ``folder``, or where that is in no repository."""
    from infx.domain.errors import UsageError

    name = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^0").stdout
    if name:
        return name.decode().strip()
    if git(folder, "rev-parse", "--git-dir").returncode:
        text = f"{folder} is in no repository of git, which would know {rev}"
        raise UsageError("bad-option", text, hint="go to the project's repository")
    hint = "fetch it (a checkout of CI has one commit: fetch-depth: 0), or correct the name"
    raise UsageError("bad-option", f"git knows no commit {rev}", hint=hint)


def forked(base: str, head: str, folder: Path) -> str:
    """Return the commit at which two revisions part: what ``base`` got since is no change of
    ``head``. Raises UsageError ``bad-option`` where git does not know them or they have none."""
    from infx.domain.errors import UsageError

    old, new = revision(base, folder), revision(head, folder)
    if found := git(folder, "merge-base", old, new).stdout.decode().split():
        return found[0]
    hint = "fetch the whole history (a checkout of CI has one commit: fetch-depth: 0)"
    raise UsageError("bad-option", f"{base} and {head} have no commit in common", hint=hint)


def is_ahead(commit: str, head: str, folder: Path) -> bool:
    """Return True when git knows ``commit`` and ``head`` does not contain it."""
    behind = ("merge-base", "--is-ancestor", commit, head)
    return is_known(commit, folder) and git(folder, *behind).returncode == 1


def is_known(commit: str, folder: Path) -> bool:
    """Return True when git has the commit of this hash."""
    return git(folder, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


@contextmanager
def project_at(rev: str, project: Project) -> Iterator[Project]:
    """Give the project as it is at ``rev``, in a folder that goes with the context.

    What the project's own folder holds for infx's own files (an editable install) is of ``rev``
    too. Raises UsageError ``bad-option`` where git does not know ``rev``.
    """
    commit = revision(rev, project.root)
    archive = git(project.root, "archive", "--format=tar", commit).stdout  # below its folder
    with TemporaryDirectory(prefix="infx-at-") as folder:
        root = Path(folder).resolve()
        if archive:
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(root, filter=_inside)
        own = project.fallback == project.root
        yield replace(project, root=root, fallback=root if own else project.fallback)


def _inside(member: tarfile.TarInfo, root: str) -> tarfile.TarInfo | None:
    """Leave out what is no file below ``root``: a link that leads away is no matrix."""
    try:
        return tarfile.data_filter(member, root)
    except tarfile.FilterError:
        return None


def text_at(rev: str, path: Path) -> bytes:
    """Return a file as it was at ``rev``; empty where it was not there. Raises UsageError
    ``bad-option`` where git does not know ``rev``."""
    folder = path.resolve().parent
    commit = revision(rev, folder)
    return git(folder, "show", f"{commit}:./{path.name}").stdout


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Return what git printed and how it ended. Raises UsageError where there is no git."""
    from infx.domain.errors import UsageError

    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError as error:
        sentence = "git is needed here, and is not on PATH"
        raise UsageError("bad-option", sentence, hint="install git") from error
