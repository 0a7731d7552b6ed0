"""Axes whose expressions need each other's values."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from infx.config.expressions import Expression
from infx.config.matrix import AxisValues
from infx.config.nodes import Report
from infx.domain.axes import kebab

__all__ = ["refuse_cycle"]


def refuse_cycle(axes: Iterable[AxisValues], report: Report) -> None:
    """Report a circle of axes at its first line; at a scenario's own before the recipe's."""
    derived = {axis.name: axis for axis in axes if isinstance(axis.values, Expression)}
    needs = {name: _names(axis) & derived.keys() for name, axis in derived.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        names = error.args[1]
        first = min((derived[n] for n in names), key=lambda axis: (axis.default, axis.where.line))
        circle = " -> ".join(kebab(name) for name in reversed(names))
        sentence = f"these axes need each other: {circle}"
        report.error("expression-cycle", sentence, first.where, "give one of them a value")


def _names(axis: AxisValues) -> frozenset[str]:
    return axis.values.names if isinstance(axis.values, Expression) else frozenset()
