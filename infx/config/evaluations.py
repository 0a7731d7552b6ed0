"""An evaluation of an entry: a task that infx knows, or the path of an lm-eval task file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from infx.config.library import Library
from infx.config.matrix import EvaluationSpec
from infx.config.nodes import MapNode, Node
from infx.config.shape import shaped
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where
from infx.domain.vocabulary import FILTERS, TASKS
from infx.workloads.lm_eval_task import GSM8K_VERSION, VERSION

__all__ = ["SOURCES", "evaluation_content", "read_evaluation"]

SOURCES = {"gsm_mini": "generated", "gsm_mini_heldout": "generated", "gsm8k": "hub"}
"""Where a task's questions come from unless it is said."""

_VERSIONS = {"gsm_mini": VERSION, "gsm_mini_heldout": VERSION, "gsm8k": GSM8K_VERSION}
_GSM8K_FILES = ("train.jsonl", "test.jsonl")


def read_evaluation(node: Node, library: Library) -> EvaluationSpec | None:
    """Return an evaluation; None after reporting faults.

    Paths are taken from the project's folder and made absolute, since a job runs elsewhere. The
    questions of gsm8k come from its ``source``: the hub, or a folder that holds its files.
    """
    section = shaped(node, "EvaluationSection", "an evaluation", library.report)
    if section is None or not isinstance(node, MapNode):
        return None
    task = section["task"]
    if task in TASKS:
        _check_filters(node, library)
        section["source"] = _source(task, section["source"], node, library)
    elif task.endswith((".yaml", ".yml")):
        section["task"] = section["source"] = str(library.project.absolute(task))
    else:
        _unknown_task(task, node, library)
        return None
    content = _content(section["task"], section["source"], node, library)
    if content is None:
        return None
    section["bars"] = {name: float(bar) for name, bar in section["bars"].items()}
    return EvaluationSpec(where=node.where, content=content, **section)


def evaluation_content(task: str, source: str) -> str:
    """Return what identifies a task's questions: the sha256 (64 hex digits) of its files, or
    ``version:<n>`` of a task that infx writes itself.

    infx's own task asks the questions of a gsm8k folder, so its version enters that sha256.
    Raises OSError when a file cannot be read.
    """
    return _identity(task, [_sha256(path) for path in _files(task, source)])


def _files(task: str, source: str) -> tuple[Path, ...]:
    if task not in TASKS:
        return (Path(task),)
    return () if source == SOURCES[task] else tuple(Path(source, name) for name in _GSM8K_FILES)


def _identity(task: str, digests: Sequence[str]) -> str:
    if task not in TASKS:
        return digests[0]
    version = f"version:{_VERSIONS[task]}"
    content = "\n".join((version, *digests)).encode()
    return hashlib.sha256(content).hexdigest() if digests else version


def _content(task: str, source: str, node: MapNode, library: Library) -> str | None:
    """Return `evaluation_content`; its files become inputs of the plan. None after a fault."""
    where = node.values["source" if task in TASKS and "source" in node.values else "task"].where
    digests = [_input(path, where, library) for path in _files(task, source)]
    return None if None in digests else _identity(task, [d for d in digests if d])


def _input(path: Path, where: Where, library: Library) -> str | None:
    name = library.project.shown(path)
    try:
        library.inputs[name] = digest = _sha256(path)
    except (FileNotFoundError, ValueError):
        sentence = f"there is no file {name} in {library.project.root}"
        library.report.error("unknown-reference", sentence, where, "correct the path")
    except OSError as error:
        sentence = f"{name} cannot be read: {error.strerror}"
        library.report.error("file-unreadable", sentence, where, "check the path")
    else:
        return digest
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unknown_task(task: str, node: MapNode, library: Library) -> None:
    hint = did_you_mean(task, TASKS)
    sentence = f"there is no task `{task}`; a task file's path ends in .yaml"
    library.report.error("unknown-reference", sentence, node.values["task"].where, hint)


def _check_filters(node: MapNode, library: Library) -> None:
    bars = node.get("bars")
    if not isinstance(bars, MapNode):
        return
    for key in bars.values.keys() - set(FILTERS):
        hint = did_you_mean(str(key), FILTERS)
        sentence = f"`{key}` is no filter of this task"
        library.report.error("unknown-value", sentence, bars.keys[key], hint)


def _source(task: str, given: str | None, node: MapNode, library: Library) -> str:
    default = SOURCES[task]
    if given in (None, default):
        return default
    if task == "gsm8k":
        return str(library.project.absolute(str(given)))
    sentence = f"{task} is generated; it has no source `{given}`"
    where = node.values["source"].where
    library.report.error("unknown-value", sentence, where, "leave `source` out")
    return default
