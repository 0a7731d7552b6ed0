"""Cross-field rules, checked before anything is spent.

An error stops the plan; a refusal of the engine excludes its candidate; information is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from infx.config.matrix import Entry, Scenario
from infx.domain.axes import kebab
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy, Arm, Workload
from infx.frameworks.base import Framework
from infx.plan.expand import Values

__all__ = ["MONO_ROWS", "lint_combination", "lint_entry", "mono_serves", "place"]

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
            yield Finding("bar-missing", "info", sentence, evaluation.where)


def lint_combination(
    arm: Arm, values: Values, workload: Workload, entry: Entry, at: Place
) -> list[Finding]:
    """Return the faults of one resolved combination; ``at`` finds the line of an axis."""
    found = [_queueing(arm, values, at), _captures(arm, values, at), _heads(arm, at)]
    found += [_gpus(arm, entry, at), _method(arm, entry, at), _context(arm, workload, at)]
    return [finding for finding in found if finding]


def place(scenario: Scenario, include: Where | None = None) -> Place:
    """Return the finder of lines for a scenario, or for one include rule of it."""
    places = {axis.name: axis.where for axis in scenario.axes}

    def at(*names: str) -> Where:
        return include or next((places[n] for n in names if n in places), scenario.where)

    return at


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


def _queueing(arm: Arm, values: Values, at: Place) -> Finding | None:
    most, conc = arm.axes.max_num_seqs, values["conc"]
    if most is None or most >= conc or values["queueing"]:
        return None
    return Finding(
        "max-num-seqs-below-conc",
        "error",
        f"max-num-seqs is {most} where conc is {conc}: {conc - most} requests would wait",
        at("max_num_seqs", "conc"),
        hint="raise it, or set queueing: true",
    )


def _captures(arm: Arm, values: Values, at: Place) -> Finding | None:
    sizes, axes = arm.axes.capture_sizes, arm.axes
    requests, width = min(values["conc"], axes.max_num_seqs or values["conc"]), axes.k + 1
    if not sizes or max(sizes) >= requests * width:
        return None
    sentence = (
        f"conc {values['conc']} reaches {requests * width} rows a step ({requests} requests of "
        f"{width}); the largest capture size is {max(sizes)}"
    )
    return Finding("capture-gap", "error", sentence, at("capture_sizes"))


def _heads(arm: Arm, at: Place) -> Finding | None:
    heads, tp = arm.model.heads, arm.axes.tp
    if not heads or heads % tp == 0:
        return None
    sentence = f"tp {tp} does not divide the {heads} attention heads of {arm.model.name}"
    return Finding("tp-heads", "error", sentence, at("tp"))


def _gpus(arm: Arm, entry: Entry, at: Place) -> Finding | None:
    have, need = entry.cluster.gpus_per_node, arm.axes.tp * arm.axes.pp
    if not have or need <= have:
        return None
    sentence = f"tp x pp is {need} accelerators; a node of {entry.cluster.name} has {have}"
    return Finding("tp-gpus", "error", sentence, at("tp", "pp"))


def _method(arm: Arm, entry: Entry, at: Place) -> Finding | None:
    if arm.axes.k == 0 or arm.method != "none":
        return None
    sentence = f"k is {arm.axes.k} and {entry.name} has no speculation"
    return Finding("k-without-method", "error", sentence, at("k"))


def _context(arm: Arm, workload: Workload, at: Place) -> Finding | None:
    limit = arm.axes.max_model_len
    if limit is None or isinstance(workload, Accuracy) or workload.isl + workload.osl <= limit:
        return None
    sentence = f"isl {workload.isl} + osl {workload.osl} is over max-model-len {limit}"
    return Finding("context-too-long", "error", sentence, at("max_model_len"))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
