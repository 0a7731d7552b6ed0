"""What can be told of an expression before its names have values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from infx.domain.axes import AXES, VOCABULARY

__all__ = ["results", "strange_words", "undecided"]


def strange_words(tree: ast.expr) -> Iterator[tuple[ast.Constant, str, str]]:
    """Yield each string that is compared with an axis whose vocabulary lacks it: the literal, the
    string, the axis."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for left, right in pairwise((node.left, *node.comparators)):
                yield from _strange(left, right)
                yield from _strange(right, left)


def _strange(axis: ast.expr, other: ast.expr) -> Iterator[tuple[ast.Constant, str, str]]:
    if not isinstance(axis, ast.Name) or axis.id not in VOCABULARY:
        return
    for item in other.elts if isinstance(other, ast.Tuple | ast.List) else (other,):
        match item:
            case ast.Constant(value=str() as word) if word not in VOCABULARY[axis.id]:
                yield item, word, axis.id


def undecided(tree: ast.expr) -> Iterator[ast.expr]:
    """Yield each part that a condition's result may be and that is neither true nor false."""
    match tree:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return
        case ast.Name(id=name) if name in AXES and str(AXES[name].type).startswith("bool"):
            return
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from undecided(part)
        case ast.IfExp(body=body, orelse=other):
            yield from undecided(body)
            yield from undecided(other)
        case _:
            yield tree


def results(tree: ast.expr) -> Iterator[ast.expr]:
    """Yield each part that the result may be: the branches of conditionals, else the whole."""
    if isinstance(tree, ast.IfExp):
        yield from results(tree.body)
        yield from results(tree.orelse)
    else:
        yield tree
