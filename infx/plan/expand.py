"""The cross product of a scenario, each element resolved.

An expression is evaluated once for each distinct combination of the values it uses, so that the
cost of a large product is that of its dictionary look-ups.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import TopologicalSorter
from itertools import product
from operator import itemgetter
from typing import Any

from infx.config.expressions import Expression
from infx.config.matrix import ExcludeRule, IncludeRule, Scenario
from infx.domain.axes import AXES, SIZES, VOCABULARY, kebab, value_type
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = [
    "Derived",
    "Element",
    "Exclusion",
    "Values",
    "derive",
    "derived_axes",
    "elements",
    "excluding",
    "in_order",
    "memoised",
    "rule_text",
    "whole",
]

Values = dict[str, Any]
"""One combination: axis -> value."""

Derived = Mapping[str, tuple[Expression, Where]]
"""The derived axes of a scenario, or of one include rule of it, with their places."""

_DEFAULTS: Values = {name: axis.default for name, axis in AXES.items()}


@dataclass(frozen=True, slots=True)
class Element:
    """One combination with every axis resolved; ``include`` is the rule that added it, if any."""

    values: Values
    include: IncludeRule | None = None


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An exclude rule ready to apply; ``text`` is its reason with its place."""

    text: str
    reason: str
    where: Where


def elements(scenario: Scenario) -> Iterator[Element]:
    """Yield every element of the cross product, then those that include rules add."""
    free = {a.name: a.values for a in scenario.axes if not isinstance(a.values, Expression)}
    fill = derive(derived_axes(scenario))
    for combination in product(*free.values()):
        values = _DEFAULTS.copy()
        values.update(zip(free, combination, strict=True))
        fill(values)
        yield Element(values)
    for rule in scenario.include:
        values = _DEFAULTS | {name: given[0] for name, given in free.items() if len(given) == 1}
        values |= {n: v for n, v in rule.values.items() if not isinstance(v, Expression)}
        derive(derived_axes(scenario, rule))(values)
        yield Element(values, rule)


def derived_axes(scenario: Scenario, include: IncludeRule | None = None) -> Derived:
    """Return the expressions of a scenario; what an include rule names takes their place."""
    axes = scenario.axes
    derived = {a.name: (a.values, a.where) for a in axes if isinstance(a.values, Expression)}
    for name, value in include.values.items() if include else ():
        derived.pop(name, None)
        if isinstance(value, Expression) and include:
            derived[name] = (value, include.place(name))
    return derived


def in_order(derived: Derived) -> list[str]:
    """Return the derived axes, each after those that it needs (the loader refused cycles)."""
    needs = {name: text.names & derived.keys() for name, (text, _) in derived.items()}
    return list(TopologicalSorter(needs).static_order())


def derive(derived: Derived) -> Callable[[Values], None]:
    """Return a function that fills the derived axes of a combination in place."""
    steps = [
        (name, memoised(derived[name][0], partial(check_axis, name, derived[name][1])))
        for name in in_order(derived)
    ]

    def fill(values: Values) -> None:
        for name, evaluate in steps:
            values[name] = evaluate(values)

    return fill


def rule_text(rule: ExcludeRule) -> str:
    """Return how the ledger names an exclude rule: its reason and its place."""
    return f"{rule.reason} ({rule.where})"


def excluding(rules: Sequence[ExcludeRule]) -> Callable[[Values], Exclusion | None]:
    """Return a function that names the first exclude rule that applies, or None."""
    compiled = [
        (Exclusion(rule_text(rule), rule.reason, rule.where), memoised(rule.when)) for rule in rules
    ]

    def first(values: Values) -> Exclusion | None:
        for rule, applies in compiled:
            if applies(values):
                return rule
        return None

    return first


def memoised(
    expression: Expression, check: Callable[[Any], Any] = lambda raw: raw
) -> Callable[[Values], Any]:
    """Return ``check(expression)`` as a function of a combination, evaluated once for each
    distinct use of its names."""
    names = sorted(expression.names)
    if not names:
        constant = check(expression.evaluate({}))
        return lambda _: constant
    pick: Callable[[Values], Any] = itemgetter(*names)
    known: dict[Any, Any] = {}

    def evaluate(values: Values) -> Any:
        key = pick(values)
        try:
            return known[key]
        except KeyError:
            result = known[key] = check(expression.evaluate(values))
            return result

    return evaluate


def check_axis(name: str, where: Where, raw: Any) -> Any:
    """Return ``raw`` as a value of the axis. Raises ConfigError when it is of another kind.

    None is the engine's own value, of an axis that may be left to it.
    """
    kind, least = value_type(name), AXES[name].metadata["least"]
    if raw is None and AXES[name].default is None:
        return None
    if kind == SIZES:
        sizes = raw if isinstance(raw, tuple | list) else (raw,)
        return tuple(sorted({whole(name, least, where, size) for size in sizes}))
    if name in VOCABULARY:
        words = VOCABULARY[name]
        return _expect(raw in words, name, raw, f"one of {', '.join(words)}", where)
    if kind == "bool":
        return _expect(isinstance(raw, bool), name, raw, "true or false", where)
    return whole(name, least, where, raw)


def whole(name: str, least: int | None, where: Where, raw: Any) -> int:
    """Return ``raw`` as a whole number of at least ``least``. Raises ConfigError."""
    number = int(raw) if isinstance(raw, float) and raw.is_integer() else raw
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    _expect(is_whole, name, raw, "a whole number", where)
    return int(_expect(least is None or number >= least, name, raw, f"at least {least}", where))


def _expect(holds: bool, name: str, raw: Any, expected: str, where: Where) -> Any:
    if holds:
        return raw
    sentence = f"{kebab(name)} becomes {reprlib.repr(raw)}; expected {expected}"
    hint = "change the expression, or leave the combination out with an exclude rule"
    raise ConfigError([Finding("out-of-range", "error", sentence, where, hint)])
