"""What a master configuration must look like: everything that InferenceX's validator refuses.

All faults of all entries are found in one pass. What a mapping holds is checked key by key against
its shape; what keys mean together is in `infx.config.inferencex.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infx.config.inferencex.fields import (
    AGENTIC,
    AGENTIC_ROW,
    BACKEND,
    COMPONENT,
    FIXED,
    FIXED_ROW,
    MULTI_ENTRY,
    MULTI_ROW,
    SCENARIOS,
    SINGLE_ENTRY,
    WORKER,
    Field,
    Shape,
)
from infx.config.inferencex.rules import (
    check_agentic,
    check_components,
    check_concurrency,
    check_offload,
    check_topology,
    check_workers,
)
from infx.config.inferencex.tree import Map, Notes, Seq
from infx.config.suggestions import did_you_mean

__all__ = ["check_entries", "check_shape", "maps_of", "search_rows"]


def check_entries(entries: Mapping[str, Any], file: Map, notes: Notes) -> None:
    """Report every fault of the entries of one file."""
    for key, entry in entries.items():
        if "*" in key or "?" in key:
            sentence = f"`{key}` holds a wildcard, which only what selects entries may"
            notes.error("bad-name", sentence, file.key_at(key), "rename the entry")
        if isinstance(entry, Map):
            _check_entry(key, entry, notes)
        else:
            sentence = f"`{key}` must be a mapping, not {_shown(entry)}"
            notes.error("wrong-type", sentence, file.value_at(key))


def check_shape(value: Map, shape: Shape, what: str, notes: Notes) -> bool:
    """Report keys that ``shape`` lacks, values that it refuses or doubts; return if it is sound."""
    sound = True
    for key, below in value.items():
        field = shape.get(key)
        if field is None:
            sentence, hint = f"{what} has no key `{key}`", did_you_mean(key, shape)
            notes.error("unknown-key", sentence, value.key_at(key), hint)
            sound = False
        elif code := field.fault(below):
            sentence = f"`{key}` of {what} must be {field.expected}, not {_shown(below)}"
            notes.error(code, sentence, value.value_at(key))
            sound = False
        elif field.least is not None and below is not None and below < field.least:
            _doubt_size(value, key, field.least, what, notes)
    for key in shape.required:
        if key not in value:
            notes.error("missing-key", f"{what} needs `{key}`", value.where, f"add `{key}:`")
            sound = False
    return sound


def search_rows(entry: Map) -> Iterator[Map]:
    """Yield every row of an entry's search spaces, whatever the scenario."""
    scenarios = entry.get("scenarios")
    for kind in ("fixed-seq-len", "agentic-coding"):
        for config in maps_of(scenarios, kind):
            yield from maps_of(config, "search-space")


def maps_of(parent: Any, key: str) -> Iterator[Map]:
    """Yield the mappings of the list that stands under a key, if all that is so."""
    items = parent.get(key) if isinstance(parent, Map) else None
    if isinstance(items, Seq):
        yield from (item for item in items if isinstance(item, Map))


def _doubt_size(value: Map, key: str, least: int, what: str, notes: Notes) -> None:
    sentence = (
        f"`{key}` of {what} is {value[key]}; their validator takes any whole number, and only "
        f"{least} or more can run"
    )
    notes.warn("out-of-range", sentence, value.value_at(key))


def _check_entry(key: str, entry: Map, notes: Notes) -> None:
    multinode = entry.get("multinode") is True
    check_shape(entry, MULTI_ENTRY if multinode else SINGLE_ENTRY, f"`{key}`", notes)
    if entry.get("disagg") and not multinode:
        sentence = f"`{key}` says disagg and is no multi-node entry"
        notes.error("conflicting-keys", sentence, entry.key_at("disagg"), "set multinode: true")
    _component(entry, "router", COMPONENT, notes)
    scenarios = entry.get("scenarios")
    if isinstance(scenarios, Map):
        _check_scenarios(key, entry, scenarios, notes)
        check_components(key, entry, tuple(search_rows(entry)), notes)


def _check_scenarios(key: str, entry: Map, scenarios: Map, notes: Notes) -> None:
    check_shape(scenarios, SCENARIOS, f"`scenarios` of `{key}`", notes)
    if not any(scenarios.get(kind) for kind in SCENARIOS):
        sentence = f"`{key}` has no scenario; {' or '.join(SCENARIOS)} must hold one"
        notes.error("missing-key", sentence, entry.key_at("scenarios"))
    for config in _members(scenarios, "fixed-seq-len", FIXED, notes):
        for row in _members(config, "search-space", _row_shape(entry), notes):
            _check_row(entry, row, notes)
    for config in _members(scenarios, "agentic-coding", AGENTIC, notes):
        for row in _members(config, "search-space", AGENTIC_ROW, notes):
            _check_row(entry, row, notes)
            check_agentic(entry, row, notes)
            check_offload(config, row, notes)
    if scenarios.get("agentic-coding"):
        _check_fleet(key, entry, notes)


def _row_shape(entry: Map) -> Shape:
    return MULTI_ROW if entry.get("multinode") is True else FIXED_ROW


def _check_fleet(key: str, entry: Map, notes: Notes) -> None:
    runner = entry.get("runner")
    if isinstance(runner, str) and not runner.startswith("cluster:"):
        sentence = f"the agentic entry `{key}` runs on `{runner}`, which may be several fleets"
        hint = "name one: `cluster:NAME`"
        notes.error("unknown-value", sentence, entry.value_at("runner"), hint)


def _check_row(entry: Map, row: Map, notes: Notes) -> None:
    _items(row, "conc-list", Field("size"), notes)
    check_concurrency(row, notes)
    check_topology(row, notes)
    _component(row, "router", COMPONENT, notes)
    _component(row, "kv-offload-backend", BACKEND, notes)
    for role in ("prefill", "decode"):
        worker = row.get(role)
        if isinstance(worker, Map):
            check_shape(worker, WORKER, f"`{role}`", notes)
            check_topology(worker, notes)
            _items(worker, "additional-settings", Field("text"), notes)
    check_workers(row, notes)


def _members(parent: Map, key: str, shape: Shape, notes: Notes) -> Iterator[Map]:
    """Yield the mappings of a list after checking them; report members of other types."""
    items = parent.get(key)
    if not isinstance(items, Seq):
        return
    what = f"an item of `{key}`"
    for index, item in enumerate(items):
        if isinstance(item, Map):
            check_shape(item, shape, what, notes)
            yield item
        else:
            sentence = f"{what} must be a mapping, not {_shown(item)}"
            notes.error("wrong-type", sentence, items.at(index))


def _items(parent: Map, key: str, field: Field, notes: Notes) -> None:
    items = parent.get(key)
    if not isinstance(items, Seq):
        return
    for index, item in enumerate(items):
        if code := field.fault(item):
            sentence = f"an item of `{key}` must be {field.expected}, not {_shown(item)}"
            notes.error(code, sentence, items.at(index))


def _component(parent: Map, key: str, shape: Shape, notes: Notes) -> None:
    component = parent.get(key)
    if not isinstance(component, Map):
        return
    check_shape(component, shape, f"`{key}`", notes)
    version = component.get("version")
    if isinstance(version, str) and version.startswith("image:"):
        sentence = f"the version of `{key}` is {version}, an image and no version of its own"
        hint = "write its release, package version or source commit"
        notes.error("unknown-value", sentence, component.value_at("version"), hint)


def _shown(value: Any) -> str:
    if isinstance(value, Map | Seq):
        return "a mapping" if isinstance(value, Map) else "a list"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return f"{text[:40]}{'…' * (len(text) > 40)}"
