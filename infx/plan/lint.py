"""Cross-field rules, checked before anything is spent.

An error stops the plan; a warning or information is shown with it. What an engine refuses is not
an error: it excludes its candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from infx.config.matrix import Entry, Scenario
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy, Arm, Workload
from infx.frameworks.base import MONO_ROWS, Framework
from infx.plan.expand import Values
from infx.plan.resolve import OWN

__all__ = ["Place", "lint_arms", "lint_combination", "lint_entry", "place"]

Place = Callable[..., Where]
"""The line of the first of the named axes that the scenario writes."""


def lint_entry(entry: Entry, framework: Framework) -> Iterator[Finding]:
    """Yield what is wrong with an entry whatever its axes are."""
    yield from _options(entry, framework)
    yield from _speculation(entry, framework)
    if entry.image.startswith("pypi:") and "==" not in entry.image and entry.image != OWN:
        sentence = f"image {entry.image!r} has no version"
        yield Finding("image-unpinned", "error", sentence, entry.where, f"{entry.image}==VERSION")
    if entry.cluster.hardware not in entry.recipe.hardware:
        sentence = (
            f"cluster {entry.cluster.name!r} has {entry.cluster.hardware}; recipe "
            f"{entry.recipe.name!r} is for {', '.join(entry.recipe.hardware)}"
        )
        yield Finding("hardware-differs", "error", sentence, entry.where)
    for spec in entry.evaluations:
        if not spec.bars:
            sentence = f"evaluation {spec.task!r} of {entry.name!r} has no bar"
            yield Finding("bar-missing", "info", sentence, spec.where)


def lint_arms(entry: Entry, arms: Sequence[Arm]) -> Iterator[Finding]:
    """Yield what is worth saying of the arms that will be measured, and asked of mono."""
    if entry.speculation and arms and all(arm.axes.k == 0 for arm in arms):
        sentence = f"{entry.name!r} names a method of speculation and measures none"
        yield Finding("speculation-unused", "warning", sentence, entry.speculation.where)
    for scenario in entry.scenarios:
        for axis in scenario.axes:
            if axis.name == "mono" and axis.values != ("off",):
                yield from (_mono_serves(k, axis.where) for k in sorted({a.axes.k for a in arms}))


def lint_combination(
    arm: Arm, values: Values, workload: Workload, entry: Entry, at: Place
) -> list[Finding]:
    """Return the faults of one resolved combination; ``at`` finds the line of an axis."""
    found = [_queueing(arm, values, workload, at), _captures(arm, values, at)]
    found += [_heads(arm, at), _gpus(arm, entry, at), _method(arm, entry, at)]
    found += [_golden(arm, workload, entry), _context(arm, workload, at)]
    return [finding for finding in found if finding]


def place(scenario: Scenario, include: Where | None = None) -> Place:
    """Return the finder of lines for a scenario, or for one include rule of it."""
    places = {axis.name: axis.where for axis in scenario.axes}

    def at(*names: str) -> Where:
        return include or next((places[n] for n in names if n in places), scenario.where)

    return at


def _options(entry: Entry, framework: Framework) -> Iterator[Finding]:
    known = ", ".join(sorted(framework.options)) or "none"
    places = ((entry.recipe.where, entry.recipe.options), (entry.where, entry.options))
    for where, options in places:
        for name in options:
            if name not in framework.options:
                sentence = f"{framework.name} has no option {name!r}; it has {known}"
                yield Finding("option-unknown", "error", sentence, where)


def _speculation(entry: Entry, framework: Framework) -> Iterator[Finding]:
    if entry.speculation is None:
        return
    if not entry.recipe.chat_template:
        sentence = f"recipe {entry.recipe.name!r} speculates without a chat template"
        yield Finding("no-chat-template", "error", sentence, entry.speculation.where)
    if entry.speculation.method not in framework.methods:
        sentence = (
            f"{framework.name} has no method {entry.speculation.method!r}; it has "
            f"{', '.join(framework.methods)}"
        )
        yield Finding("unsupported-method", "error", sentence, entry.speculation.where)
    law = entry.speculation.law
    if entry.speculation.golden and (law or not framework.laws) and law not in framework.laws:
        drawn = ", ".join(framework.laws) or "none: it has no synthetic acceptance"
        sentence = f"{framework.name} cannot draw by {law or 'any law'}; it has {drawn}"
        yield Finding("unsupported-law", "error", sentence, entry.speculation.where)


def _mono_serves(k: int, at: Where) -> Finding:
    sentence = (
        f"a mono step holds {MONO_ROWS} rows, pads included: at most {MONO_ROWS // (k + 1)} "
        f"requests of {k + 1} at K={k}; the unfused layers serve above that"
    )
    return Finding("mono-serves", "info", sentence, at)


def _queueing(arm: Arm, values: Values, workload: Workload, at: Place) -> Finding | None:
    most, conc = arm.axes.max_num_seqs, values["conc"]
    if most is None or most >= conc or values["queueing"]:
        return None
    evaluation = isinstance(workload, Accuracy)
    return Finding(
        "max-num-seqs-below-conc",
        "error",
        f"max-num-seqs is {most} where conc is {conc}: {conc - most} requests would wait",
        at("max_num_seqs", "conc"),
        hint="lower the evaluation's conc" if evaluation else "raise it, or set queueing: true",
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
    hint = f"add a capture size of {requests * width} or more"
    return Finding("capture-gap", "error", sentence, at("capture_sizes"), hint)


def _heads(arm: Arm, at: Place) -> Finding | None:
    heads, kv_heads, tp = arm.model.heads, arm.model.kv_heads, arm.axes.tp
    if heads % tp == 0 and (kv_heads % tp == 0 or tp % kv_heads == 0):
        return None
    name = arm.model.name
    sentence = f"tp {tp} does not divide the {heads} attention heads of {name}"
    if heads % tp == 0:
        sentence = f"tp {tp} neither divides nor repeats the {kv_heads} key-value heads of {name}"
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


def _golden(arm: Arm, workload: Workload, entry: Entry) -> Finding | None:
    real = arm.acceptance.mode == "real"
    if isinstance(workload, Accuracy) or arm.method == "none" or not real:
        return None
    sentence = f"{entry.name!r} drafts K={arm.axes.k} tokens and names no golden acceptance length"
    where = entry.speculation.where if entry.speculation else entry.where
    return Finding("no-golden", "error", sentence, where)


def _context(arm: Arm, workload: Workload, at: Place) -> Finding | None:
    limit = arm.axes.max_model_len
    if limit is None:
        return None
    if isinstance(workload, Accuracy):
        need, text = workload.max_tokens + 1, f"an answer of {workload.max_tokens} tokens"
    else:
        need = workload.isl + workload.osl
        text = f"isl {workload.isl} + osl {workload.osl}"
    if need <= limit:
        return None
    sentence = f"{text} is over max-model-len {limit}"
    return Finding("context-too-long", "error", sentence, at("max_model_len"))
