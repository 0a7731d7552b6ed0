"""The cross product of a scenario, each element resolved and given a disposition.

An expression is evaluated once for each distinct combination of the values it uses, so that the
cost of a large product is that of its dictionary look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any

from infx.config.expressions import Expression
from infx.config.matrix import AxisValues, ExcludeRule, IncludeRule, Scenario
from infx.domain.axes import AXES, kebab
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["Dependence", "Element", "dependence", "derive", "elements", "excluding", "memoised"]

Values = dict[str, Any]

_DEFAULTS: Values = {name: axis.default for name, axis in AXES.items()}


@dataclass(frozen=True, slots=True)
class Element:
    """One combination with every axis resolved; ``include`` is the rule that added it, if any."""

    values: Values
    include: IncludeRule | None = None


@dataclass(frozen=True, slots=True)
class Dependence:
    """The expressions of a scenario, in an order in which each finds its values.

    ``on_conc`` holds the axes that follow the concurrency, directly or through others.
    """

    ordered: tuple[tuple[str, Expression, Where], ...]
    on_conc: frozenset[str]


def dependence(axes: Mapping[str, tuple[Expression, Where]]) -> Dependence:
    """Return the derived axes in order of evaluation. Raises ConfigError on a cycle."""
    ordered: list[tuple[str, Expression, Where]] = []
    on_conc: set[str] = {"conc"}
    waiting = dict(axes)
    while waiting:
        ready = [name for name, (text, _) in waiting.items() if not text.names & waiting.keys()]
        if not ready:
            raise ConfigError([_cycle(waiting)])
        for name in ready:
            expression, where = waiting.pop(name)
            ordered.append((name, expression, where))
            if expression.names & on_conc:
                on_conc.add(name)
    return Dependence(tuple(ordered), frozenset(on_conc - {"conc"}))


def elements(scenario: Scenario) -> Iterator[Element]:
    """Yield every element of the cross product, then those that include rules add."""
    free = [axis for axis in scenario.axes if not isinstance(axis.values, Expression)]
    names = [axis.name for axis in free]
    fill = derive(_expressions(scenario.axes))
    base = dict(_DEFAULTS)
    for combination in product(*(axis.values for axis in free)):  # type: ignore[arg-type]
        values = base.copy()
        values.update(zip(names, combination, strict=True))
        fill(values)
        yield Element(values)
    for rule in scenario.include:
        yield _included(rule, scenario)


def derive(expressions: Mapping[str, tuple[Expression, Where]]) -> Callable[[Values], None]:
    """Return a function that fills the derived axes of a combination in place."""
    steps = [
        (name, memoised(expression, partial(check_axis, name, where)))
        for name, expression, where in dependence(expressions).ordered
    ]

    def fill(values: Values) -> None:
        for name, evaluate in steps:
            values[name] = evaluate(values)

    return fill


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An exclude rule ready to apply; ``text`` is its reason with its place."""

    text: str
    reason: str
    where: Where


def excluding(rules: Sequence[ExcludeRule]) -> Callable[[Values], Exclusion | None]:
    """Return a function that names the first exclude rule that applies, or None."""
    compiled = [
        (Exclusion(f"{rule.reason} ({rule.where})", rule.reason, rule.where), memoised(rule.when))
        for rule in rules
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
    """Return ``raw`` as a value of the axis. Raises ConfigError when it is of another kind."""
    default, least = AXES[name].default, AXES[name].metadata["least"]
    if isinstance(default, tuple):
        sizes = raw if isinstance(raw, tuple | list) else (raw,)
        return tuple(sorted({_whole(name, size, least, where) for size in sizes}))
    if isinstance(default, bool) or name == "prefix_caching":
        return _expect(isinstance(raw, bool), name, raw, "true or false", where)
    if isinstance(default, str):
        return _expect(isinstance(raw, str), name, raw, "a name", where)
    return _whole(name, raw, least, where)


def _whole(name: str, raw: Any, least: int | None, where: Where) -> Any:
    whole = isinstance(raw, int) and not isinstance(raw, bool)
    if isinstance(raw, float) and raw.is_integer():
        raw, whole = int(raw), True
    _expect(whole, name, raw, "a whole number", where)
    return _expect(least is None or raw >= least, name, raw, f"at least {least}", where)


def _expect(holds: bool, name: str, raw: Any, expected: str, where: Where) -> Any:
    if holds:
        return raw
    sentence = f"{kebab(name)} is {raw!r} here; expected {expected}"
    raise ConfigError([Finding("out-of-range", "error", sentence, where)])


def _expressions(axes: Sequence[AxisValues]) -> dict[str, tuple[Expression, Where]]:
    return {a.name: (a.values, a.where) for a in axes if isinstance(a.values, Expression)}


def _included(rule: IncludeRule, scenario: Scenario) -> Element:
    values, expressions = dict(_DEFAULTS), _expressions(scenario.axes)
    for axis in scenario.axes:
        if axis.name in rule.values or isinstance(axis.values, Expression):
            continue
        if len(axis.values) != 1:
            sentence = f"include must name {kebab(axis.name)}: it has {len(axis.values)} values"
            raise ConfigError([Finding("missing-key", "error", sentence, rule.where)])
        values[axis.name] = axis.values[0]
    for name, value in rule.values.items():
        expressions.pop(name, None)
        if isinstance(value, Expression):
            expressions[name] = (value, rule.where)
        else:
            values[name] = value
    derive(expressions)(values)
    return Element(values, rule)


def _cycle(waiting: Mapping[str, tuple[Expression, Where]]) -> Finding:
    name, (expression, where) = next(iter(waiting.items()))
    needed = ", ".join(kebab(n) for n in sorted(expression.names & waiting.keys()))
    sentence = f"{kebab(name)} needs {needed}, which needs it in turn"
    return Finding("expression-cycle", "error", sentence, where)
