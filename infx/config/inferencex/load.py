"""Master configurations and runners to rows, with every fault of every file found in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infx.config.inferencex.doubts import doubt_entries, doubt_rows
from infx.config.inferencex.evals import Evaluations, with_evaluations
from infx.config.inferencex.expand import Made, expand
from infx.config.inferencex.runners import Runners, read_runners
from infx.config.inferencex.schema import check_entries
from infx.config.inferencex.select import Selection
from infx.config.inferencex.tree import Map, Notes, read_tree
from infx.config.project import Project
from infx.domain.findings import Finding

__all__ = ["Masters", "Rows", "plan_rows", "read_masters"]


@dataclass(frozen=True, slots=True)
class Masters:
    """Entries by key in the order of their files, the runners, and what is doubtful."""

    entries: Mapping[str, Map]
    runners: Runners
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in InferenceX's field names with the entries they come from, and what is doubtful."""

    made: list[Made]
    findings: tuple[Finding, ...]


def read_masters(
    paths: Sequence[Path], runners: Path | None, project: Project, checkout: Path | None = None
) -> Masters:
    """Return what the files say; ``checkout`` is a folder of InferenceX in which scripts are looked
    for. Raises ConfigError with all findings when their validator would refuse the files.
    """
    notes = Notes()
    machines = read_runners(runners, project.shown(runners), notes) if runners else Runners()
    entries: dict[str, Any] = {}
    for path in paths:
        file = read_tree(path, project.shown(path), notes)
        if file is not None:
            _add(entries, file, notes)
            check_entries(file, file, notes)
    notes.refuse()
    doubt_entries(entries, machines, checkout, notes)
    notes.refuse()
    return Masters(entries, machines, tuple(notes.findings))


def plan_rows(masters: Masters, chosen: Selection, evaluations: Evaluations) -> Rows:
    """Return the rows of the selected entries.

    Raises UsageError where a choice fits nothing.
    """
    chosen.check(masters.runners)
    made = expand(masters.entries, masters.runners, chosen)
    notes = Notes(list(masters.findings))
    doubt_rows(made, notes)
    return Rows(with_evaluations(made, evaluations), tuple(notes.findings))


def _add(entries: dict[str, Any], file: Map, notes: Notes) -> None:
    for key in file.keys() & entries.keys():
        sentence = f"the entry `{key}` stands in {entries[key].file} already"
        notes.error("duplicate-key", sentence, file.key_at(key), "rename one")
    entries |= file
    if not file:
        notes.error("file-empty", f"{file.file} has no entry", file.where)
