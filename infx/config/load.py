"""Matrix files to a Matrix, with every fault of every file found in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from infx.config.entries import read_entry
from infx.config.hardware import VERSION, read_hardware
from infx.config.library import Library
from infx.config.matrix import Entry, Matrix
from infx.config.names import NAME_HINT, is_name
from infx.config.nodes import MapNode, Node
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.findings import Where

__all__ = ["load_matrix"]


def load_matrix(paths: Sequence[Path], project: Project, *, goldens: bool = True) -> Matrix:
    """Return the entries of all ``paths`` with what they refer to.

    ``goldens`` False leaves golden curves unread, which collecting them needs: no length is known.

    Raises ConfigError with the findings of all files, in order of file and line.
    """
    library = Library(project, goldens=goldens)
    entries: list[Entry | None] = []
    seen: dict[str, Where] = {}
    for path in paths:
        entries += _entries(path, library, seen)
    _check_hardware(library)
    library.report.check()
    return Matrix(
        entries=tuple(entry for entry in entries if entry is not None),
        inputs=dict(sorted(library.inputs.items())),
    )


def _check_hardware(library: Library) -> None:
    """Report what is wrong with the prices now: reports read them when all is measured."""
    try:
        read_hardware(library.project)
    except ConfigError as error:
        library.report.take(error)


def _entries(path: Path, library: Library, seen: dict[str, Where]) -> list[Entry | None]:
    node = library.read(path)
    if node is None:
        return []
    if not node.values:
        name = library.project.shown(path)
        library.report.error("file-empty", f"{name} has no matrix entry", Where(name))
    if what := _other_kind(node):
        known = ", ".join(library.project.matrices())
        sentence = f"{library.project.shown(path)} is no matrix: it holds {what}"
        library.report.error("wrong-type", sentence, node.where, f"known matrices: {known}")
        return []
    found = []
    for key, value in node.values.items():
        name, where = str(key), node.keys[key]
        _check_name(name, where, seen, library)
        found.append(read_entry(name, value, where, library))
    return found


def _other_kind(node: MapNode) -> str:
    """Return what a file holds that is plainly of another kind than a matrix, else ``""``."""
    if isinstance(node.get("model"), MapNode) and "framework" in node.values:
        return "a recipe"
    if _all_have(node, "executor"):
        return "clusters"
    if _all_have(node, "prices"):
        return "prices of hardware"
    if _all_have(node, "thinking_on") or _all_have(node, "thinking_off"):
        return "acceptance lengths"
    return ""


def _all_have(node: MapNode, key: str) -> bool:
    below: list[Node] = [one for name, one in node.values.items() if name != VERSION]
    return bool(below) and all(isinstance(v, MapNode) and key in v.values for v in below)


def _check_name(name: str, where: Where, seen: dict[str, Where], library: Library) -> None:
    if not is_name(name):
        library.report.error("bad-name", f"`{name}` cannot name an entry", where, NAME_HINT)
    if name in seen:
        sentence = f"the entry `{name}` stands at {seen[name]} already"
        library.report.error("duplicate-key", sentence, where, "rename one")
    seen.setdefault(name, where)
