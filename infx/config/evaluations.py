"""An evaluation of an entry: a task that infx knows, or the path of an lm-eval task file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from infx.config.library import Library
from infx.config.matrix import EvaluationSpec
from infx.config.nodes import MapNode, Node
from infx.config.shape import shaped
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where
from infx.domain.vocabulary import FILTERS, TASKS

__all__ = ["read_evaluation"]

_GSM8K_FILES = ("train.jsonl", "test.jsonl")


def read_evaluation(node: Node, library: Library) -> EvaluationSpec | None:
    """Return an evaluation; None after reporting faults.

    Paths are taken from the project's folder and made absolute, since a job runs elsewhere. The
    questions of gsm8k come from its ``source``: the hub, or a folder that holds its files.
    """
    section = shaped(node, "EvaluationSection", "an evaluation", library.report)
    if section is None or not isinstance(node, MapNode):
        return None
    task, where = section["task"], node.values["task"].where
    if task in TASKS:
        _check_filters(node, library)
        section["source"] = _source(task, section["source"], node, library)
    else:
        section["task"] = section["source"] = _task_file(task, where, library)
    section["bars"] = {name: float(bar) for name, bar in section["bars"].items()}
    return EvaluationSpec(where=node.where, **section)


def _task_file(task: str, where: Where, library: Library) -> str:
    if task.endswith((".yaml", ".yml")):
        return _file(task, where, library)
    hint = did_you_mean(task, TASKS)
    sentence = f"there is no task `{task}`; a task file's path ends in .yaml"
    library.report.error("unknown-reference", sentence, where, hint)
    return task


def _check_filters(node: MapNode, library: Library) -> None:
    bars = node.get("bars")
    if not isinstance(bars, MapNode):
        return
    for key in bars.values.keys() - set(FILTERS):
        hint = did_you_mean(str(key), FILTERS)
        sentence = f"`{key}` is no filter of this task"
        library.report.error("unknown-value", sentence, bars.keys[key], hint)


def _source(task: str, given: str | None, node: MapNode, library: Library) -> str:
    default = "hub" if task == "gsm8k" else "generated"
    if given in (None, default):
        return default
    where = node.values["source"].where
    if task != "gsm8k":
        sentence = f"{task} is generated; it has no source `{given}`"
        library.report.error("unknown-value", sentence, where, "leave `source` out")
        return default
    folder = str(given)
    for name in _GSM8K_FILES:
        _file(f"{folder}/{name}", where, library)
    return str(_path(folder, library))


def _file(text: str, where: Where, library: Library) -> str:
    """Return the absolute path of a file, whose content becomes an input of the plan."""
    path = _path(text, library)
    if path.is_file():
        library.inputs[library.project.shown(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    else:
        sentence = f"there is no file {text} in {library.project.root}"
        library.report.error("unknown-reference", sentence, where, "correct the path")
    return str(path)


def _path(text: str, library: Library) -> Path:
    return (library.project.root / Path(text).expanduser()).resolve()
