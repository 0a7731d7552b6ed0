"""A scenario: the workload, the axes, and the rules that add candidates or take them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from infx.config.axis_values import (
    FAULT,
    axis_items,
    expression,
    literals,
    read_axes,
    read_axis_value,
)
from infx.config.cycles import refuse_cycle
from infx.config.expressions import Expression
from infx.config.library import Library
from infx.config.matrix import AxisValues, ExcludeRule, IncludeRule, Scenario
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode
from infx.config.shape import shaped
from infx.config.workloads import read_workload
from infx.domain.axes import AXES, kebab, snake
from infx.domain.findings import Where

__all__ = ["draft_tokens", "read_scenario"]


def read_scenario(
    node: Node, library: Library, defaults: tuple[AxisValues, ...] = ()
) -> Scenario | None:
    """Return a scenario of an entry; None after reporting faults.

    ``defaults`` are the recipe's axes, for those that the scenario does not name.
    """
    report = library.report
    shaped(node, "ScenarioSection", "a scenario", report)
    if not isinstance(node, MapNode):
        return None
    workload = read_workload(node.get("workload"), library)
    axes_node = node.get("axes")
    axes = read_axes(axes_node, report) if isinstance(axes_node, MapNode) else ()
    axes += _unnamed(axes_node, defaults)
    refuse_cycle(axes, report)
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


def _include(node: Node, axes: tuple[AxisValues, ...], report: Report) -> IncludeRule:
    items = axis_items(node, "an include rule", report)
    values = {
        name: value
        for name, below in items
        if (value := read_axis_value(name, below, report)) is not FAULT
    }
    named = {snake(str(key)) for key in node.values} if isinstance(node, MapNode) else set(AXES)
    for axis in axes:
        if axis.name not in named and isinstance(axis.values, tuple) and len(axis.values) > 1:
            name = kebab(axis.name)
            sentence = f"an include rule must say `{name}`: it has {len(axis.values)} values"
            report.error("missing-key", sentence, node.where, f"add `{name}`")
    if any(isinstance(value, Expression) for value in values.values()):
        refuse_cycle(tuple(_overlaid(axes, values, node.where)), report)
    places = {name: below.where for name, below in items}
    return IncludeRule(values=values, where=node.where, places=places)


def _exclude(node: Node, report: Report) -> ExcludeRule | None:
    section = shaped(node, "ExcludeSection", "an exclude rule", report)
    when = node.get("when") if isinstance(node, MapNode) else None
    if not isinstance(when, ScalarNode) or not isinstance(when.value, str) or not when.text:
        return None
    parsed = expression(when, report, condition=True)
    if section is None or parsed is None:
        return None
    return ExcludeRule(when=parsed, reason=section["reason"], where=node.where)


def _unnamed(axes_node: Node | None, defaults: Iterable[AxisValues]) -> tuple[AxisValues, ...]:
    named = axes_node.values.keys() if isinstance(axes_node, MapNode) else ()
    return tuple(axis for axis in defaults if kebab(axis.name) not in named)


def _overlaid(
    axes: Iterable[AxisValues], values: Mapping[str, Any], where: Where
) -> Iterator[AxisValues]:
    """Yield the axes as an include rule at ``where`` has them."""
    for axis in axes:
        if axis.name not in values:
            yield replace(axis, where=where)
    for name, value in values.items():
        if isinstance(value, Expression):
            yield AxisValues(name=name, values=value, where=where)
