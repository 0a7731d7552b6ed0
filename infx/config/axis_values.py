"""Values of axes, workload fields and engine options as the files write them.

What an axis may hold (type, least, vocabulary) is read from `infx.domain.axes`. A text that is not
in the axis's vocabulary is an expression over other axes.

``capture-sizes`` holds lists, so one value and several look alike. A list of numbers is one value
(``[4, 8, 16]``); a list of lists is several (``[[4, 8], [4, 8, 16]]``). Sizes are put in order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from infx.config.expressions import Expression, literals_in, names_in, parse_expression
from infx.config.matrix import AxisValues, Value
from infx.config.names import is_line
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode
from infx.config.shape import wrong_type
from infx.config.suggestions import closest, did_you_mean
from infx.domain.axes import AXES, SIZES, VOCABULARY, kebab, snake, value_type
from infx.domain.errors import ConfigError
from infx.domain.findings import Where
from infx.domain.point import SERVER_AXES, Scalar

__all__ = [
    "FAULT",
    "axis_items",
    "expression",
    "literals",
    "read_axes",
    "read_axis_value",
    "read_defaults",
    "read_option",
    "read_whole",
]

_NAMES = frozenset(AXES)
_WORD = re.compile(r"[\w-]*")

FAULT = object()
"""Stands for a value whose fault has been reported (None is a value: the engine's own default)."""


def read_axes(node: Node, report: Report) -> tuple[AxisValues, ...]:
    """Return the axes of a scenario that have no fault; the others are reported."""
    found = [
        AxisValues(name=name, values=values, where=value.where)
        for name, value in axis_items(node, "`axes`", report)
        if (values := _values(name, value, report)) is not None
    ]
    return tuple(found)


def read_defaults(node: Node | None, report: Report) -> tuple[AxisValues, ...]:
    """Return the axes of a recipe: one value or one expression for each server axis it names.

    What the client asks (``conc``) is the scenario's to say; it is reported, like other faults.
    """
    if not isinstance(node, MapNode):
        return ()  # none, or reported with the shape of the recipe
    found = []
    for name, below in axis_items(node, "`axes`", report, SERVER_AXES):
        value = read_axis_value(name, below, report)
        if value is not FAULT:
            values = value if isinstance(value, Expression) else (value,)
            found.append(AxisValues(name=name, values=values, where=below.where, default=True))
    return tuple(found)


def axis_items(
    node: Node, what: str, report: Report, names: Collection[str] = AXES
) -> list[tuple[str, Node]]:
    """Return the (axis, value) pairs of the mapping that people know as ``what``; keys other than
    ``names`` and other nodes are reported."""
    if not isinstance(node, MapNode):
        wrong_type(node, what, "a mapping", report)
        return []
    known = {kebab(name): name for name in names}
    for key in node.values.keys() - known.keys():
        if snake(str(key)) in AXES and snake(str(key)) not in names:
            sentence = f"`{key}` is what a client asks, not a server"
            report.error("unknown-key", sentence, node.keys[key], "write it in a scenario")
            continue
        hint = did_you_mean(str(key), known)
        report.error("unknown-key", f"`{key}` is not an axis", node.keys[key], hint)
    return [(known[str(key)], value) for key, value in node.values.items() if key in known]


def read_whole(name: str, node: Node, least: int, report: Report) -> Value:
    """Return a field of a workload: a whole number of at least ``least``, or an expression."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return expression(node, report)
    return _whole(name, node, least, report)


def read_option(name: str, node: Node, report: Report) -> Value:
    """Return an engine option: a literal, a list of literals, or an expression.

    A quoted text is always a literal. A plain one is an expression when it names an axis, or does
    arithmetic on numbers alone; one that nearly names an axis is reported as a misspelling.
    """
    if isinstance(node, ListNode):
        return tuple(_literal(name, item, report) for item in node.items)
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or node.quoted:
        return _literal(name, node, report)
    names = names_in(node.text)
    if names is None:
        return node.value
    if not names or names & _NAMES:
        return expression(node, report)
    if any(len(n) > 3 and closest(n, AXES, cutoff=0.8) for n in names):
        return expression(node, report)
    return node.value


def expression(node: ScalarNode, report: Report, *, condition: bool = False) -> Expression | None:
    """Return the text of ``node`` as an expression over axes; None after reporting its faults."""
    where, inline = _place(node), bool(node.text_col)
    try:
        return parse_expression(node.text, _NAMES, where, inline=inline, condition=condition)
    except ConfigError as error:
        report.take(error)
        return None


def literals(node: Node | None) -> Iterator[tuple[object, Where]]:
    """Yield each literal that a value of an axis may be, with its place: the value itself, or what
    the branches of its expression say."""
    if not isinstance(node, ScalarNode):
        return
    if isinstance(node.value, str):
        yield from literals_in(node.text, _place(node), inline=bool(node.text_col))
    else:
        yield node.value, node.where


def _place(node: ScalarNode) -> Where:
    """Return where the text of a scalar starts, behind its quote."""
    return Where(node.where.file, node.where.line, node.text_col or node.where.col)


def _values(name: str, node: Node, report: Report) -> Any:
    if not _lists_values(name, node):
        value = read_axis_value(name, node, report)
        if value is FAULT:
            return None
        return value if isinstance(value, Expression) else (value,)
    assert isinstance(node, ListNode)
    if not node.items:
        report.error("out-of-range", f"`{kebab(name)}` lists no value", node.where, "list one")
        return None
    values = [_listed(name, item, report) for item in node.items]
    fresh = _all_differ(name, values, node, report)
    return tuple(values) if fresh and FAULT not in values else None


def _lists_values(name: str, node: Node) -> bool:
    if not isinstance(node, ListNode):
        return False
    return value_type(name) != SIZES or any(isinstance(item, ListNode) for item in node.items)


def _listed(name: str, node: Node, report: Report) -> Any:
    value = read_axis_value(name, node, report)
    if not isinstance(value, Expression):
        return value
    sentence = f"`{value.text}` is an expression in a list of values of `{kebab(name)}`"
    report.error("wrong-type", sentence, node.where, "an expression stands alone, outside a list")
    return FAULT


def read_axis_value(name: str, node: Node, report: Report) -> Any:
    """Return one value of an axis, literal or Expression, or FAULT."""
    kind, label = value_type(name), f"`{kebab(name)}`"
    if isinstance(node, ScalarNode) and node.faulty:
        if name in VOCABULARY:
            report.advise("ambiguous-scalar", node.where, f"write {_expected(name)}")
        return FAULT
    if kind == SIZES and isinstance(node, ListNode):
        return _sizes(name, node, report)
    if not isinstance(node, ScalarNode):
        wrong_type(node, label, _expected(name), report)
        return FAULT
    if isinstance(node.value, str):
        return _text(name, node, report)
    if node.value is None and AXES[name].default is None:
        return None
    if kind == "int":
        return _fault_if_none(_whole(name, node, AXES[name].metadata["least"], report))
    if kind == "bool" and isinstance(node.value, bool):
        return node.value
    wrong_type(node, label, _expected(name), report, _list_hint(kind, node))
    return FAULT


def _text(name: str, node: ScalarNode, report: Report) -> Any:
    words, a_word = VOCABULARY.get(name, ()), _WORD.fullmatch(node.text) is not None
    if node.text in words:
        return node.text
    if words and a_word and node.text not in _NAMES:
        sentence = f"`{node.text}` is not a value of `{kebab(name)}`"
        report.error("unknown-value", sentence, node.where, did_you_mean(node.text, words))
        return FAULT
    if value_type(name) == "bool" and a_word and node.text not in _NAMES:
        hint = {"on": "write true", "off": "write false"}.get(node.text, "")
        wrong_type(node, f"`{kebab(name)}`", "true or false", report, hint)
        return FAULT
    return _fault_if_none(expression(node, report))


def _sizes(name: str, node: ListNode, report: Report) -> Any:
    least = AXES[name].metadata["least"]
    sizes = [_fault_if_none(_whole(name, item, least, report)) for item in node.items]
    fresh = _all_differ(name, sizes, node, report)
    return tuple(sorted(sizes)) if fresh and FAULT not in sizes else FAULT


def _all_differ(name: str, values: list[Any], node: ListNode, report: Report) -> bool:
    repeats = [n for n, v in enumerate(values) if v is not FAULT and v in values[:n]]
    for index in repeats:
        value = values[index]
        shown = list(value) if isinstance(value, tuple) else value
        sentence = f"`{kebab(name)}` lists {shown} twice"
        report.error("repeated-value", sentence, node.items[index].where, "remove one")
    return not repeats


def _whole(name: str, node: Node, least: int, report: Report) -> int | None:
    value = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(value, int) or isinstance(value, bool):
        wrong_type(node, f"`{kebab(name)}`", "a whole number or an expression", report)
        return None
    if value < least:
        sentence = f"`{kebab(name)}` is {value}; expected at least {least}"
        report.error("out-of-range", sentence, node.where, f"write {least} or more")
        return None
    return value


def _literal(name: str, node: Node, report: Report) -> Scalar:
    if isinstance(node, ScalarNode):
        if isinstance(node.value, str) and not is_line(node.value):
            sentence = f"`{name}` has a control character or a line's end"
            report.error("bad-name", sentence, node.where, "write one line of plain text")
        return node.value
    wrong_type(node, f"`{name}`", "a value or a list of values", report)
    return None


def _fault_if_none(value: Any) -> Any:
    return FAULT if value is None else value


def _expected(name: str) -> str:
    words = {"int": "a whole number", "bool": "true or false", SIZES: "a list of sizes"}
    return words.get(value_type(name)) or f"one of {', '.join(VOCABULARY[name])}"


def _list_hint(kind: str, node: ScalarNode) -> str:
    return f"write [{node.text}]" if kind == SIZES else ""
