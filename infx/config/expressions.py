"""The expression language: an allow-list of Python's expression syntax over named axes.

Numbers, strings, names, ``+ - * / // % **``, comparisons (chained too), ``and or not``, ``in``,
conditionals, tuples and lists, and calls of `infx.config.closures.FUNCTIONS`. No attributes, no
comprehensions, no subscripts. ``range`` gives a tuple.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.config.closures import FUNCTIONS, compiled
from infx.config.meaning import results, strange_words, undecided
from infx.config.suggestions import did_you_mean
from infx.domain.axes import VOCABULARY, kebab, snake
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["Expression", "literals_in", "names_in", "parse_expression"]

_LONGEST_TEXT = 1000
_NOWHERE = Where("<expression>", 1, 1)
_HYPHENATED = re.compile(r"(?<![\w.'\"-])[a-z]+(?:-[a-z]+)+(?![\w'\"-])")


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: its text, the names it needs, and ``evaluate(values)``.

    ``evaluate`` raises ConfigError (``expression-failed``) at the operation that has no value.
    """

    text: str
    names: frozenset[str]
    evaluate: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)


def parse_expression(
    text: str,
    names: Collection[str],
    where: Where = _NOWHERE,
    *,
    inline: bool = True,
    condition: bool = False,
) -> Expression:
    """Return ``text`` as an expression over ``names`` (spelt with underscores).

    ``where`` is the place of the text's first character. A text that does not stand in its file as
    given (over several lines, with escapes) is not ``inline``: its faults are put at ``where``.
    A ``condition`` must be true or false. Raises ConfigError with ``bad-expression``, or with one
    ``unknown-name``, ``unknown-value`` or ``wrong-type`` for each such part.
    """
    source = _Source(text, where, inline)
    tree = _parsed(source)
    evaluate = compiled(tree, source.fault)
    found = [*source.unknown(tree, names)] or [*source.meaningless(tree, condition)]
    if found:
        raise ConfigError(sorted(found, key=lambda f: f.where.col if f.where else 0))
    return Expression(text, frozenset(name.id for name in _names(tree)), evaluate)


def names_in(text: str) -> frozenset[str] | None:
    """Return the names that ``text`` uses when it reads as an expression at all, else None."""
    try:
        return frozenset(name.id for name in _names(_parsed(_Source(text, Where("")))))
    except ConfigError:
        return None


def literals_in(text: str, where: Where, *, inline: bool = True) -> Iterator[tuple[object, Where]]:
    """Yield each literal that an expression may give as it stands, with its place; none when it
    cannot be read."""
    source = _Source(text, where, inline)
    try:
        tree = _parsed(source)
    except ConfigError:
        return
    for node in results(tree):
        if isinstance(node, ast.Constant):
            yield node.value, source.at(source.span(node)[0])


@dataclass(frozen=True, slots=True)
class _Source:
    """An expression's text and where it stands."""

    text: str
    where: Where
    inline: bool = True

    def at(self, offset: int) -> Where:
        """Return the place of the character at ``offset``."""
        if not self.inline:
            return self.where
        return Where(self.where.file, self.where.line, self.where.col + offset)

    def finding(self, code: str, sentence: str, offset: int, hint: str = "") -> Finding:
        return Finding(code, "error", sentence, self.at(offset), hint)

    def fault(self, node: ast.AST, code: str, reason: str) -> ConfigError:
        """Return the error of a node: what it says, and why that cannot be."""
        start, end = self.span(node)
        verb = "has no value " if code == "expression-failed" else "cannot be read: "
        return ConfigError([self.finding(code, f"`{self.text[start:end]}` {verb}{reason}", start)])

    def unknown(self, tree: ast.expr, names: Collection[str]) -> Iterator[Finding]:
        """Yield a finding for each name that is not in ``names``."""
        hyphenated = [m for m in _HYPHENATED.finditer(self.text) if snake(m[0]) in names]
        for match in hyphenated:
            hint = f"in expressions write `{snake(match[0])}`"
            sentence = f"`{match[0]}` is a subtraction of unknown names"
            yield self.finding("unknown-name", sentence, match.start(), hint)
        for name in _names(tree):
            start = self.span(name)[0]
            if name.id in names or any(m.start() <= start < m.end() for m in hyphenated):
                continue
            hint = did_you_mean(name.id, {*names, *FUNCTIONS, "True", "False"})
            yield self.finding("unknown-name", f"`{name.id}` is not an axis", start, hint)

    def meaningless(self, tree: ast.expr, condition: bool) -> Iterator[Finding]:
        """Yield a finding for each comparison that cannot hold and each part of a condition that
        is neither true nor false."""
        for literal, word, axis in strange_words(tree):
            sentence = f"`{word}` is not a value of `{kebab(axis)}`"
            hint = did_you_mean(word, VOCABULARY[axis])
            yield self.finding("unknown-value", sentence, self.span(literal)[0], hint)
        for part in undecided(tree) if condition else ():
            start, end = self.span(part)
            sentence = f"`{self.text[start:end]}` is neither true nor false; expected a condition"
            yield self.finding("wrong-type", sentence, start, "compare it: conc > 2")

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where the node starts and ends in the text (ast counts UTF-8 bytes)."""
        stripped = self.text.lstrip()
        padding, data = len(self.text) - len(stripped), stripped.encode()
        ends = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", len(data)))
        start, end = (padding + len(data[:end].decode("utf-8", "ignore")) for end in ends)
        return start, end


def _parsed(source: _Source) -> ast.expr:
    text = source.text
    if len(text) > _LONGEST_TEXT:
        sentence = f"an expression of {len(text)} characters; at most {_LONGEST_TEXT}"
        raise ConfigError([source.finding("bad-expression", sentence, 0)])
    line = text.strip().replace("\n", " ").replace("\r", " ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        raise ConfigError([_syntax(source, error, len(line))]) from error
    except (ValueError, MemoryError, RecursionError) as error:
        raise ConfigError([_unreadable(source, str(error) or "too deep", 0)]) from error


def _syntax(source: _Source, error: SyntaxError, length: int) -> Finding:
    reason = error.msg.removesuffix(" (detected at line 1)")
    padding = len(source.text) - len(source.text.lstrip())
    if error.offset:
        return _unreadable(source, reason, padding + error.offset - 1)
    if reason == "invalid syntax":
        return _unreadable(source, "it ends early", padding + length)
    return _unreadable(source, reason, 0)


def _unreadable(source: _Source, reason: str, offset: int) -> Finding:
    sentence = f"`{source.text}` cannot be read as an expression: {reason}"
    hint = ""
    if re.search(r"&&|\|\||\?|(?<!!)!(?!=)", source.text):
        hint = "write `and`, `or`, `not`, `x if condition else y`"
    elif re.search(r"(?<![=<>!])=(?!=)", source.text):
        hint = "compare with `==`"
    return source.finding("bad-expression", sentence, offset, hint)


def _names(tree: ast.expr) -> Iterator[ast.Name]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            yield node
