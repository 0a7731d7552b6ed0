"""What tells the points of an entry apart, for their names and the lines of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from infx.config.expressions import Expression
from infx.config.matrix import Scenario
from infx.domain.axes import AXES, is_computation
from infx.plan.expand import derived_axes

__all__ = ["computed", "differing", "named", "varied"]


def differing(scenarios: Sequence[Scenario]) -> frozenset[str]:
    """Return the axes that the scenarios of an entry say in different ways."""
    said = [{axis.name: axis.values for axis in scenario.axes} for scenario in scenarios]
    names = {name for one in said for name in one}
    return frozenset(name for name in names if len({one.get(name) for one in said}) > 1)


def varied(scenario: Scenario, apart: Collection[str] = ()) -> tuple[str, ...]:
    """Return the axes that tell the scenario's points apart, in the order of the vocabulary:
    ``apart`` from those of the other scenarios, and from each other."""
    several = {a.name for a in scenario.axes if isinstance(a.values, tuple) and len(a.values) > 1}
    several |= {name for rule in scenario.include for name in rule.values}
    return tuple(name for name in AXES if name in several | {"conc", *apart})


def computed(scenario: Scenario, apart: Collection[str] = ()) -> tuple[str, ...]:
    """Return the computation axes in which the scenario's points may differ."""
    names = {*varied(scenario, apart), *derived_axes(scenario)}
    return tuple(name for name in AXES if name in names and is_computation(name))


def named(scenario: Scenario) -> tuple[str, ...]:
    """Return the axes that the scenario writes, and those that the recipe derives, in the order of
    the vocabulary."""
    said = (a for a in scenario.axes if not a.default or isinstance(a.values, Expression))
    names = {axis.name for axis in said} | {*varied(scenario)}
    return tuple(name for name in AXES if name in names)
