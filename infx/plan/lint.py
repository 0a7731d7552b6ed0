"""Cross-field rules, checked before anything is spent.

An error stops the plan; a refusal of the engine excludes its candidate; information is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from infx.config.matrix import Entry, Scenario
from infx.domain.axes import kebab
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy, Point
from infx.frameworks.base import Framework

__all__ = ["MONO_ROWS", "lint_entry", "lint_point", "mono_serves"]

Place = Callable[..., Where]
"""The line of the first of the named axes that the scenario writes."""

MONO_ROWS = 16
"""Rows a mono step holds, pads and verify rows included (design/engine.md)."""


def lint_entry(entry: Entry, framework: Framework) -> Iterator[Finding]:
    """Yield what is wrong with an entry whatever its axes are."""
    known = {kebab(name) for name in framework.options}
    for place, options in (
        (entry.recipe.where, entry.recipe.options),
        (entry.where, entry.options),
    ):
        for name in options:
            if kebab(name) not in known:
                sentence = f"{framework.name} has no option {name!r}; it has {_listed(known)}"
                yield Finding("option-unknown", "error", sentence, place)
    if entry.speculation and not entry.recipe.chat_template:
        sentence = f"recipe {entry.recipe.name!r} speculates without a chat template"
        yield Finding("no-chat-template", "error", sentence, entry.speculation.where)
    if entry.speculation and entry.speculation.method not in framework.methods:
        sentence = f"{framework.name} has no method {entry.speculation.method!r}"
        yield Finding("unsupported-method", "error", sentence, entry.speculation.where)
    for evaluation in entry.evaluations:
        if not evaluation.bars:
            sentence = f"evaluation {evaluation.task!r} of {entry.name!r} has no bar"
            yield Finding("bar-missing", "warning", sentence, evaluation.where)


def lint_point(
    point: Point, entry: Entry, scenario: Scenario, include: Where | None
) -> list[Finding]:
    """Return the faults of one resolved point; ``include`` is the include rule that made it."""
    places = {axis.name: axis.where for axis in scenario.axes}

    def at(*names: str) -> Where:
        return include or next((places[n] for n in names if n in places), scenario.where)

    found = [_queueing(point, at), _captures(point, at), _heads(point, at), _gpus(point, entry, at)]
    found += [_method(point, at), _context(point, at)]
    return [finding for finding in found if finding]


def mono_serves(entry: Entry, scenario: Scenario) -> Finding | None:
    """Return how many requests a mono step serves in a scenario that asks for mono."""
    asked = [axis for axis in scenario.axes if axis.name == "mono"]
    if not asked or asked[0].values == ("off",):
        return None
    drafts = [axis.values for axis in scenario.axes if axis.name == "k"]
    k = max(drafts[0]) if drafts and isinstance(drafts[0], tuple) else 0  # type: ignore[type-var]
    rows = int(k) + 1  # type: ignore[arg-type]
    sentence = (
        f"a mono step holds {MONO_ROWS} rows: {MONO_ROWS // rows} requests of {rows} at K={k}; "
        "the unfused layers serve above that"
    )
    return Finding("mono-serves", "info", sentence, asked[0].where)


def _queueing(point: Point, at: Place) -> Finding | None:
    most = point.arm.axes.max_num_seqs
    if most is None or most >= point.conc or point.queueing:
        return None
    sentence = f"max-num-seqs {most} is below the concurrency {point.conc} of {point.name}"
    return Finding(
        "max-num-seqs-below-conc",
        "error",
        sentence,
        at("max_num_seqs", "conc"),
        hint="raise it, or set queueing: true",
    )


def _captures(point: Point, at: Place) -> Finding | None:
    sizes, axes = point.arm.axes.capture_sizes, point.arm.axes
    rows = min(point.conc, axes.max_num_seqs or point.conc) * (axes.k + 1)
    if not sizes or max(sizes) >= rows:
        return None
    sentence = (
        f"{point.name} reaches {rows} rows a step ({rows // (axes.k + 1)} requests of "
        f"{axes.k + 1}); the largest capture size is {max(sizes)}"
    )
    return Finding("capture-gap", "error", sentence, at("capture_sizes"))


def _heads(point: Point, at: Place) -> Finding | None:
    heads, tp = point.arm.model.heads, point.arm.axes.tp
    if not heads or heads % tp == 0:
        return None
    sentence = f"tp {tp} does not divide the {heads} attention heads of {point.arm.model.name}"
    return Finding("tp-heads", "error", sentence, at("tp"))


def _gpus(point: Point, entry: Entry, at: Place) -> Finding | None:
    have, need = entry.cluster.gpus_per_node, point.gpus
    if not have or need <= have:
        return None
    sentence = f"tp x pp = {need} accelerators; a node of {entry.cluster.name} has {have}"
    return Finding("tp-gpus", "error", sentence, at("tp", "pp"))


def _method(point: Point, at: Place) -> Finding | None:
    if point.arm.axes.k == 0 or point.arm.method != "none":
        return None
    sentence = f"k is {point.arm.axes.k} and {point.entry} has no speculation"
    return Finding("k-without-method", "error", sentence, at("k"))


def _context(point: Point, at: Place) -> Finding | None:
    limit, load = point.arm.axes.max_model_len, point.workload
    if limit is None or isinstance(load, Accuracy) or load.isl + load.osl <= limit:
        return None
    sentence = f"isl {load.isl} + osl {load.osl} is over max-model-len {limit}"
    return Finding("context-too-long", "error", sentence, at("max_model_len"))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
