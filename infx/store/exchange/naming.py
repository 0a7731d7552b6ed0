"""What people call the places where machines meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from infx.domain.errors import UsageError
from infx.store.exchange.git_place import GitPlace
from infx.store.exchange.places import ArchivePlace, FolderPlace, Place

__all__ = ["place_of"]


def place_of(text: str, folder: Path, remotes: Sequence[str]) -> Place:
    """Return the place that ``text`` names, as seen from ``folder``, where git knows ``remotes``.

    ``git:BRANCH`` or ``git:REMOTE/BRANCH``, a .tar.gz file, or a folder. Raises UsageError.
    """
    if text.startswith("git:"):
        branch = text.removeprefix("git:")
        first, _, rest = branch.partition("/")
        on_remote = first in remotes and bool(rest)
        return GitPlace(folder, first if on_remote else "", rest if on_remote else branch)
    if "://" in text:
        hint = "name a folder, a .tar.gz file, git:BRANCH or git:REMOTE/BRANCH"
        raise UsageError("not-a-place", f"{text} is an address", hint=hint)
    path = folder / text
    if text.endswith((".tar.gz", ".tgz")):
        return ArchivePlace(path)
    if text.endswith((".zip", ".tar")) or path.is_file():
        hint = "name a folder, or a file that ends with .tar.gz"
        raise UsageError("not-a-place", f"{text} is neither a folder nor a .tar.gz", hint=hint)
    return FolderPlace(path)
