"""The workload of a scenario: requests of fixed lengths, or recorded sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infx.config.axis_values import read_whole
from infx.config.library import Library
from infx.config.matrix import AGENTIC_NUMBERS, FIXED_NUMBERS, AgenticSpec, WorkloadSpec
from infx.config.nodes import MapNode, Node, Report, is_null
from infx.config.shape import shaped
from infx.config.suggestions import closest
from infx.domain.axes import kebab
from infx.domain.findings import Where
from infx.domain.vocabulary import TRACES
from infx.workloads.traces import MalformedTraceError, Trace, read_trace

__all__ = ["read_workload"]

_MAY_BE_NULL = ("duration_s", "idle_gap_cap_s", "max_context")
_OF_LENGTHS = {"isl", "osl", "requests", "warmup-requests"}


def read_workload(node: Node | None, library: Library) -> WorkloadSpec | AgenticSpec | None:
    """Return the workload at ``node``; None after reporting faults (or without a node).

    It is one of recorded sessions when it has a ``trace``, or nothing that says lengths.
    """
    if node is None:
        return None
    keys = node.values.keys() if isinstance(node, MapNode) else set()
    if "trace" in keys or (keys and not keys & _OF_LENGTHS):
        return _agentic(node, library)
    return _fixed(node, library.report)


def _fixed(node: Node, report: Report) -> WorkloadSpec | None:
    section = shaped(node, "WorkloadSection", "`workload`", report)
    if not isinstance(node, MapNode):
        return None
    values = _numbers(node, FIXED_NUMBERS, report)
    if section is None:
        return None
    return WorkloadSpec(error_share=float(section["error_share"]), where=node.where, **values)


def _agentic(node: Node, library: Library) -> AgenticSpec | None:
    what = "a `workload` with a trace"
    section = shaped(node, "AgenticSection", what, library.report)
    if not isinstance(node, MapNode):
        return None
    values = _numbers(node, AGENTIC_NUMBERS, library.report)
    if section is None:
        return None
    _check_start(section, node, library.report)
    trace = _trace(section["trace"], node.values["trace"].where, library)
    if trace is None:
        return None
    for name in ("trajectory_start_min_ratio", "trajectory_start_max_ratio", "error_share"):
        values[name] = float(section[name])
    values["use_chat_template"] = section["use_chat_template"]
    return AgenticSpec(**trace, **values, where=node.where)


def _numbers(node: MapNode, least: dict[str, int], report: Report) -> dict[str, Any]:
    return {
        name: read_whole(kebab(name), below, floor, report)
        for name, floor in least.items()
        if (below := node.get(kebab(name))) is not None
        and not (name in _MAY_BE_NULL and is_null(below))
    }


def _check_start(section: dict[str, Any], node: MapNode, report: Report) -> None:
    first, last = (section[f"trajectory_start_{end}_ratio"] for end in ("min", "max"))
    if first > last:
        sentence = f"sessions would start between {first:g} and {last:g} of their turns"
        hint = "trajectory-start-min-ratio is at most trajectory-start-max-ratio"
        report.error("conflicting-keys", sentence, node.where, hint)


def _trace(name: str, where: Where, library: Library) -> dict[str, Any] | None:
    """Return the fields of a spec that say which trace; None after a fault.

    A word is a public data set, unless a folder of that name lies in the project; paths are made
    absolute, since a job runs elsewhere.
    """
    if name in TRACES:
        return {"trace": name}
    path = library.project.absolute(name)
    if not path.exists():
        _unknown(name, where, library)
        return None
    found = _read(path, where, library)
    if found is None:
        return None
    shown = {library.project.shown(file): digest for file, digest in found.digests.items()}
    library.inputs.update(shown)
    return {"trace": str(path), "content": found.content, "longest": found.longest}


def _read(path: Path, where: Where, library: Library) -> Trace | None:
    try:
        return read_trace(path)
    except MalformedTraceError as error:
        hint = "aiperf replays Weka traces: id, block_size, requests with in, out and hash_ids"
        library.report.error("trace-malformed", str(error), where, hint)
    except OSError as error:
        sentence = f"{error.filename} cannot be read: {error.strerror}"
        library.report.error("file-unreadable", sentence, where, "check the path")
    return None


def _unknown(name: str, where: Where, library: Library) -> None:
    found = "" if "/" in name else closest(name, TRACES)
    hint = f"did you mean `{found}`?" if found else f"correct the path, or write {TRACES[-2]}"
    sentence = f"`{name}` is neither a public trace nor a folder in {library.project.root}"
    library.report.error("unknown-reference", sentence, where, hint)
