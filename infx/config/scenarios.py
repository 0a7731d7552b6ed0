"""A scenario: the workload, the axes, and the rules that add candidates or take them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from infx.config.axis_values import (
    FAULT,
    axis_items,
    expression,
    literals,
    read_axes,
    read_axis_value,
    read_whole,
)
from infx.config.expressions import Expression
from infx.config.matrix import AxisValues, ExcludeRule, IncludeRule, Scenario, WorkloadSpec
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode, is_null
from infx.config.shape import shaped
from infx.domain.axes import AXES, kebab, snake
from infx.domain.findings import Where

__all__ = ["draft_tokens", "read_scenario"]

_LEAST = {"isl": 1, "osl": 1, "requests": 1, "warmup_requests": 0, "seed": 0, "duration_s": 1}


def read_scenario(node: Node, report: Report) -> Scenario | None:
    """Return a scenario of an entry; None after reporting faults."""
    shaped(node, "ScenarioSection", "a scenario", report)
    if not isinstance(node, MapNode):
        return None
    workload = _workload(node.get("workload"), report)
    axes_node = node.get("axes")
    axes = read_axes(axes_node, report) if isinstance(axes_node, MapNode) else ()
    _refuse_cycle(_derived(axes), report)
    include = tuple(_include(item, axes, report) for item in _items(node, "include"))
    exclude = [_exclude(item, report) for item in _items(node, "exclude")]
    if workload is None:
        return None
    rules = tuple(rule for rule in exclude if rule is not None)
    return Scenario(workload=workload, axes=axes, include=include, exclude=rules, where=node.where)


def draft_tokens(scenarios: Iterable[Node]) -> Iterator[tuple[int, Where]]:
    """Yield every K above 0 that scenarios ask as a number, with its place."""
    for scenario in scenarios:
        if not isinstance(scenario, MapNode):
            continue
        places = [scenario.get("axes"), *_items(scenario, "include")]
        asked = [place.get("k") for place in places if isinstance(place, MapNode)]
        for node in asked:
            for item in node.items if isinstance(node, ListNode) else [node]:
                for k, where in literals(item):
                    if isinstance(k, int) and not isinstance(k, bool) and k > 0:
                        yield k, where


def _items(node: MapNode, key: str) -> tuple[Node, ...]:
    below = node.get(key)
    return below.items if isinstance(below, ListNode) else ()


def _workload(node: Node | None, report: Report) -> WorkloadSpec | None:
    if node is None:
        return None
    section = shaped(node, "WorkloadSection", "`workload`", report)
    if not isinstance(node, MapNode):
        return None
    values: dict[str, Any] = {
        name: read_whole(kebab(name), below, least, report)
        for name, least in _LEAST.items()
        if (below := node.get(kebab(name))) is not None
        and not (name == "duration_s" and is_null(below))
    }
    if section is None:
        return None
    return WorkloadSpec(error_share=float(section["error_share"]), where=node.where, **values)


def _include(node: Node, axes: tuple[AxisValues, ...], report: Report) -> IncludeRule:
    values = {
        name: value
        for name, below in axis_items(node, "an include rule", report)
        if (value := read_axis_value(name, below, report)) is not FAULT
    }
    named = {snake(str(key)) for key in node.values} if isinstance(node, MapNode) else set(AXES)
    for axis in axes:
        if axis.name not in named and isinstance(axis.values, tuple) and len(axis.values) > 1:
            name = kebab(axis.name)
            sentence = f"an include rule must say `{name}`: it has {len(axis.values)} values"
            report.error("missing-key", sentence, node.where, f"add `{name}`")
    if any(isinstance(value, Expression) for value in values.values()):
        _refuse_cycle(_overlaid(axes, values, node.where), report)
    return IncludeRule(values=values, where=node.where)


def _exclude(node: Node, report: Report) -> ExcludeRule | None:
    section = shaped(node, "ExcludeSection", "an exclude rule", report)
    when = node.get("when") if isinstance(node, MapNode) else None
    if not isinstance(when, ScalarNode) or not isinstance(when.value, str) or not when.text:
        return None
    parsed = expression(when, report, condition=True)
    if section is None or parsed is None:
        return None
    return ExcludeRule(when=parsed, reason=section["reason"], where=node.where)


def _derived(axes: Iterable[AxisValues]) -> dict[str, tuple[Expression, Where]]:
    return {a.name: (a.values, a.where) for a in axes if isinstance(a.values, Expression)}


def _overlaid(
    axes: Iterable[AxisValues], values: Mapping[str, Any], where: Where
) -> dict[str, tuple[Expression, Where]]:
    derived = {n: (text, where) for n, (text, _) in _derived(axes).items() if n not in values}
    said = {n: (value, where) for n, value in values.items() if isinstance(value, Expression)}
    return derived | said


def _refuse_cycle(derived: Mapping[str, tuple[Expression, Where]], report: Report) -> None:
    needs = {name: value.names & derived.keys() for name, (value, _) in derived.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        cycle = [kebab(name) for name in reversed(error.args[1])]
        first = min(derived[name][1].line for name in error.args[1])
        where = next(derived[n][1] for n in error.args[1] if derived[n][1].line == first)
        sentence = f"these axes need each other: {' -> '.join(cycle)}"
        report.error("expression-cycle", sentence, where, "give one of them a value")
