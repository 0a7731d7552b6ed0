"""Expressions as closures: a checked syntax tree becomes nested functions of the values.

`conc if conc <= 2 else 2*conc` takes about 1 µs this way, ten times less than walking the tree.
Nothing here calls eval, exec or compile; what a node may be is decided here and nowhere else.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from reprlib import repr as shortened
from typing import Any

from infx.config.scalars import LARGEST

__all__ = ["FUNCTIONS", "Fault", "compiled"]

Values = Mapping[str, Any]
Closure = Callable[[Values], Any]
Fault = Callable[[ast.AST, str, str], Exception]
"""Makes the error of a node from the node, a code and the reason."""

_LONGEST_RANGE = 100_000
_LARGEST_EXPONENT = 64
_MOST_DIGITS = 15
_DEEPEST = 60
_FAILURES = (ArithmeticError, TypeError, ValueError)


def _range(*bounds: Any) -> tuple[int, ...]:
    numbers = range(*bounds)
    if len(numbers) > _LONGEST_RANGE:
        raise ValueError(f"range of {len(numbers)} numbers; at most {_LONGEST_RANGE}")
    return tuple(numbers)


def _int(number: Any) -> int:
    return int(_number(number))


def _number(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{'nothing' if value is None else shortened(value)} is not a number")


def _power(base: Any, exponent: Any) -> Any:
    base, exponent = _number(base), _number(exponent)
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"an exponent is at most {_LARGEST_EXPONENT}")
    return _number(base**exponent)


def _round(number: Any, digits: Any = None) -> Any:
    if digits is not None and abs(_number(digits)) > _MOST_DIGITS:
        raise ValueError(f"it rounds to at most {_MOST_DIGITS} digits")
    return round(_number(number), digits)


def _bounded(value: Any) -> Any:
    """Return a value that every operation can take: numbers are bounded, so is their cost."""
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise ValueError(f"a number is at most {LARGEST}")
    return value


def _times(left: Any, right: Any) -> Any:
    return _number(left) * _number(right)


def _modulo(left: Any, right: Any) -> Any:
    return _number(left) % _number(right)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": _int,
    "len": len,
    "max": max,
    "min": min,
    "range": _range,
    "round": _round,
    "sum": sum,
}

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}


def compiled(node: ast.expr, fault: Fault) -> Closure:
    """Return ``node`` as a function of the values.

    Raises what ``fault`` makes, with code ``bad-expression``, for syntax off the allow-list; the
    function raises the same with ``expression-failed`` when there is no value.
    """
    return _Compiler(fault).closure(node)


class _Compiler:
    """One pass over a syntax tree; holds how faults are made and how deep the pass is."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._depth = 0

    def closure(self, node: ast.expr) -> Closure:
        make = getattr(self, f"_{type(node).__name__.lower()}", None)
        if make is None:
            sentence = f"{_kind(node)} is not part of the expression language"
            raise self._fault(node, "bad-expression", sentence)
        self._depth += 1
        if self._depth > _DEEPEST:
            sentence = f"the expression is nested deeper than {_DEEPEST} levels"
            raise self._fault(node, "bad-expression", sentence)
        made: Closure = make(node)
        self._depth -= 1
        return made

    def _constant(self, node: ast.Constant) -> Closure:
        value = node.value
        if not isinstance(value, str | int | float | None):
            raise self._fault(node, "bad-expression", f"{value!r} is not a number or a string")
        if isinstance(value, int | float) and value > LARGEST:
            raise self._fault(node, "out-of-range", f"a number is at most {LARGEST}")
        return lambda _: value

    def _name(self, node: ast.Name) -> Closure:
        return operator.itemgetter(node.id)

    def _tuple(self, node: ast.Tuple | ast.List) -> Closure:
        items = [self.closure(item) for item in node.elts]
        return lambda values: tuple([item(values) for item in items])

    _list = _tuple

    def _binop(self, node: ast.BinOp) -> Closure:
        apply = _BINARY.get(type(node.op))
        if apply is None:
            sentence = f"the operator {_kind(node.op)} is not part of the expression language"
            raise self._fault(node, "bad-expression", sentence)
        left, right = self.closure(node.left), self.closure(node.right)
        return self._guarded(node, lambda values: apply(left(values), right(values)))

    def _unaryop(self, node: ast.UnaryOp) -> Closure:
        apply = _UNARY.get(type(node.op))
        if apply is None:
            sentence = f"the operator {_kind(node.op)} is not part of the expression language"
            raise self._fault(node, "bad-expression", sentence)
        operand = self.closure(node.operand)
        return self._guarded(node, lambda values: apply(operand(values)))

    def _boolop(self, node: ast.BoolOp) -> Closure:
        first, *rest = [self.closure(value) for value in node.values]
        stop = isinstance(node.op, ast.Or)

        def evaluate(values: Values) -> Any:
            result = first(values)
            for part in rest:
                if bool(result) is stop:
                    return result
                result = part(values)
            return result

        return evaluate

    def _compare(self, node: ast.Compare) -> Closure:
        operands = [self.closure(item) for item in (node.left, *node.comparators)]
        tests = [self._test(node, op) for op in node.ops]
        if len(tests) == 1:
            test, (left, right) = tests[0], operands
            return self._guarded(node, lambda values: test(left(values), right(values)))
        return self._guarded(node, _chain(tests, operands))

    def _test(self, node: ast.Compare, op: ast.cmpop) -> Callable[[Any, Any], Any]:
        if (test := _COMPARE.get(type(op))) is not None:
            return test
        sentence = f"the operator {_kind(op)} is not part of the expression language"
        raise self._fault(node, "bad-expression", sentence)

    def _ifexp(self, node: ast.IfExp) -> Closure:
        test, body, other = map(self.closure, (node.test, node.body, node.orelse))
        return lambda values: body(values) if test(values) else other(values)

    def _call(self, node: ast.Call) -> Closure:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = FUNCTIONS.get(name)
        if function is None or node.keywords:
            known = ", ".join(FUNCTIONS)
            sentence = f"only {known} can be called, without keyword arguments"
            raise self._fault(node, "bad-expression", sentence)
        arguments = [self.closure(argument) for argument in node.args]
        return self._guarded(node, lambda values: function(*[a(values) for a in arguments]))

    def _guarded(self, node: ast.expr, inner: Closure) -> Closure:
        """Return ``inner`` with its failures put at ``node``."""
        fault = self._fault

        def evaluate(values: Values) -> Any:
            try:
                return _bounded(inner(values))
            except _FAILURES as error:
                raise fault(node, "expression-failed", _why(node, values, error)) from error

        return evaluate


def _chain(tests: list[Callable[[Any, Any], Any]], operands: list[Closure]) -> Closure:
    first, *rest = operands
    steps = list(zip(tests, rest, strict=True))

    def evaluate(values: Values) -> Any:
        left, result = first(values), True
        for test, operand in steps:
            right = operand(values)
            result = test(left, right)
            if not result:
                return result
            left = right
        return result

    return evaluate


def _why(node: ast.AST, values: Values, error: Exception) -> str:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    used = ", ".join(f"{name}={shortened(values[name])}" for name in sorted(names & values.keys()))
    return f"for {used}: {error}" if used else f"({error})"


def _kind(node: ast.AST) -> str:
    name = type(node).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
