"""Matrix files to a Matrix, with every fault of every file found in one pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from infx.config.entries import read_entry
from infx.config.library import Library
from infx.config.matrix import Entry, Matrix
from infx.config.project import Project
from infx.domain.findings import Where

__all__ = ["load_matrix"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def load_matrix(paths: Sequence[Path], project: Project) -> Matrix:
    """Return the entries of all ``paths`` with what they refer to.

    Raises ConfigError with the findings of all files, in order of file and line.
    """
    library = Library(project)
    entries: list[Entry | None] = []
    seen: dict[str, Where] = {}
    for path in paths:
        entries += _entries(path, library, seen)
    library.report.check()
    return Matrix(
        entries=tuple(entry for entry in entries if entry is not None),
        inputs=dict(sorted(library.inputs.items())),
    )


def _entries(path: Path, library: Library, seen: dict[str, Where]) -> list[Entry | None]:
    node = library.read(path)
    if node is None:
        return []
    if not node.values:
        name = library.project.shown(path)
        library.report.error("file-empty", f"{name} has no matrix entry", Where(name))
    found = []
    for key, value in node.values.items():
        name, where = str(key), node.keys[key]
        _check_name(name, where, seen, library)
        found.append(read_entry(name, value, where, library))
    return found


def _check_name(name: str, where: Where, seen: dict[str, Where], library: Library) -> None:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, dots, hyphens and underscores"
        library.report.error("bad-name", f"`{name}` cannot name an entry", where, hint)
    if name in seen:
        sentence = f"the entry `{name}` stands at {seen[name]} already"
        library.report.error("duplicate-key", sentence, where, "rename one")
    seen.setdefault(name, where)
