"""Cross-field rules, checked before anything is spent.

An error stops the plan; a warning or information is shown with it. What an engine refuses is not
an error: it excludes its candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from infx.config.matrix import Entry, IncludeRule, Scenario
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy, Agentic, Arm, FixedLengths, Workload
from infx.frameworks.base import MONO_ROWS, Framework, Refusal
from infx.plan.expand import Values
from infx.plan.lint_captures import lint_gap
from infx.plan.lint_offload import lint_offload
from infx.plan.lint_options import lint_options
from infx.plan.lint_workload import lint_workloads
from infx.plan.resolve import OWN

__all__ = [
    "Place",
    "lint_arms",
    "lint_combination",
    "lint_draft_tokens",
    "lint_entry",
    "lint_mono",
    "place",
]

Place = Callable[..., Where]
"""The line of the first of the named axes that the scenario writes."""


def lint_entry(entry: Entry, framework: Framework) -> Iterator[Finding]:
    """Yield what is wrong with an entry whatever its axes are."""
    yield from lint_options(entry, framework)
    yield from lint_workloads(entry)
    yield from _speculation(entry, framework)
    package, _, version = entry.image.partition("==")
    if package.startswith("pypi:") and not version and entry.image != OWN:
        sentence, hint = f"image {entry.image!r} has no version", f"write {package}==VERSION"
        yield Finding("image-unpinned", "error", sentence, entry.where, hint)
    if entry.cluster.hardware not in entry.recipe.hardware:
        sentence = (
            f"cluster {entry.cluster.name!r} has {entry.cluster.hardware}; recipe "
            f"{entry.recipe.name!r} is for {', '.join(entry.recipe.hardware)}"
        )
        yield Finding("hardware-differs", "error", sentence, entry.where)
    if entry.recipe.delegated and entry.cluster.executor != "srt":
        sentence = (
            f"recipe {entry.recipe.name!r} is srt-slurm's to launch, and cluster "
            f"{entry.cluster.name!r} has executor {entry.cluster.executor}"
        )
        yield Finding(
            "srt-only", "error", sentence, entry.where, "name a cluster with executor srt"
        )
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


def lint_mono(
    entry: Entry, refused: Sequence[tuple[Refusal, Where]], arms: Sequence[Arm]
) -> Iterator[Finding]:
    """Yield a warning when every candidate that asks mono was refused; ``refused`` holds them, with
    the line that asks, and ``arms`` what will be measured."""
    if not refused or any(arm.axes.mono == "on" for arm in arms):
        return
    refusal, where = refused[0]
    sentence = (
        f"{entry.name!r} asks mono for {len(refused)} candidates and gets it for none; the first "
        f"is refused by {refusal.code}: {refusal.sentence}"
    )
    yield Finding("mono-refused", "warning", sentence, where)


def lint_combination(
    arm: Arm, values: Values, workload: Workload, entry: Entry, at: Place
) -> list[Finding]:
    """Return the faults of one resolved combination; ``at`` finds the line of an axis."""
    gap = lint_gap(arm, values["conc"], at("capture_sizes"))
    found = [_queueing(arm, values, workload, at), gap]
    found += [_heads(arm, at), _gpus(arm, entry, at), _method(arm, entry, at)]
    found += [_golden(arm, workload, entry), _context(arm, workload, at)]
    found += lint_offload(arm, entry.cluster, at)
    return [finding for finding in found if finding]


def lint_draft_tokens(values: Values, entry: Entry, at: Place) -> Finding | None:
    """Return an error for a K that the entry's golden curve lacks: it has no acceptance length."""
    spec, k = entry.speculation, values["k"]
    if spec is None or not spec.golden or not k or k in spec.lengths:
        return None
    sentence, hint = spec.lacks(k)
    return Finding("golden-k-missing", "error", sentence, at("k"), hint)


def place(scenario: Scenario, include: IncludeRule | None = None) -> Place:
    """Return the finder of lines for a scenario, or for one include rule of it: what the rule does
    not say itself stands where the scenario or its recipe says it."""
    places = {axis.name: axis.where for axis in scenario.axes}
    places |= {name: include.place(name) for name in include.values} if include else {}
    otherwise = include.where if include else scenario.where

    def at(*names: str) -> Where:
        return next((places[name] for name in names if name in places), otherwise)

    return at


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
    if not have or need <= have or arm.delegated:
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
    need, text = _longest(workload)
    if need <= limit:
        return None
    sentence = f"{text} is over max-model-len {limit}"
    return Finding("context-too-long", "error", sentence, at("max_model_len"))


def _longest(workload: Workload) -> tuple[int, str]:
    """Return the tokens of the longest request (0: unknown), and how to say them."""
    match workload:
        case Accuracy(max_tokens=most):
            return most + 1, f"an answer of {most} tokens"
        case Agentic(context=longest):
            return longest, f"the trace's longest request of {longest} tokens"
        case FixedLengths(isl=isl, osl=osl):
            return isl + osl, f"isl {isl} + osl {osl}"
    raise TypeError(f"no workload: {workload!r}")
