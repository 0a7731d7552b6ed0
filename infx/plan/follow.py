"""Which fields of a point follow the concurrency, and by which expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from infx.config.expressions import Expression
from infx.config.matrix import IncludeRule, Scenario, Value
from infx.domain.point import Agentic, FixedLengths
from infx.plan.expand import Element, derived_axes, in_order

__all__ = ["Follows"]


class Follows:
    """The fields of one scenario's points that change with the concurrency.

    They are replaced by their expression in curve_id, so that all concurrencies of a derived
    configuration lie on one curve. An include rule's literals follow nothing.
    """

    def __init__(self, options: Mapping[str, Value], scenario: Scenario) -> None:
        load = {name: getattr(scenario.workload, name, None) for name in _WORKLOAD}
        self._others = {**options, **load}
        self._scenario = scenario
        self._following = cache(self._find)

    def of(self, element: Element) -> Mapping[str, str]:
        """Return field -> text of its expression."""
        rules = self._scenario.include
        return self._following(rules.index(element.include) if element.include else None)

    def _find(self, number: int | None) -> dict[str, str]:
        rule: IncludeRule | None = None if number is None else self._scenario.include[number]
        axes, names = derived_axes(self._scenario, rule), {"conc"}
        found: dict[str, str] = {}
        for name in in_order(axes):
            if axes[name][0].names & names:
                names.add(name)
                found[name] = axes[name][0].text
        for name, value in self._others.items():
            if isinstance(value, Expression) and value.names & names:
                found[name] = value.text
        return found


_WORKLOAD = {*FixedLengths.__dataclass_fields__, *Agentic.__dataclass_fields__} - {"kind"}
