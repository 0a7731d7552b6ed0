"""The expressions of GitHub's workflows, as far as ours use them: ``${{ … }}`` and ``if:``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[\w-]+(?:\.[\w-]+)*|&&|\|\||==|!=|!|[(),])")
_STATUS = ("always", "success", "failure", "cancelled")
_SETTLES = re.compile(rf"\b(?:{'|'.join(_STATUS)})\(\)")


def filled(text: str, context: Mapping[str, Any]) -> str:
    """Return ``text`` with every ``${{ … }}`` in it replaced by its value."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: shown(value(found[1], context)), text)


def holds(condition: str | None, context: Mapping[str, Any]) -> bool:
    """Return whether a step or job runs: without a word on it, only after no failure."""
    text = (condition or "success()").strip().removeprefix("${{").removesuffix("}}")
    whole = text if _SETTLES.search(text) else f"success() && ({text})"
    return truthy(value(whole, context))


def value(text: str, context: Mapping[str, Any]) -> Any:
    """Return the value of an expression. Raises ValueError for what it does not understand."""
    tokens = []
    place = 0
    text = text.strip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise ValueError(f"unknown at {text[place:]!r}")
        tokens.append(found[1])
        place = found.end()
    reader = _Reader(tokens, context)
    result = reader.either()
    if reader.left:
        raise ValueError(f"left over in {text!r}: {reader.left}")
    return result


def truthy(found: Any) -> bool:
    return found not in (None, "", 0, False)


def shown(found: Any) -> str:
    return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


class _Reader:
    def __init__(self, tokens: list[str], context: Mapping[str, Any]) -> None:
        self.left, self.context = tokens, context

    def take(self, *wanted: str) -> bool:
        if self.left and self.left[0] in wanted:
            self.left.pop(0)
            return True
        return False

    def either(self) -> Any:
        found = self.both()
        while self.take("||"):
            other = self.both()
            found = found if truthy(found) else other
        return found

    def both(self) -> Any:
        found = self.equal()
        while self.take("&&"):
            other = self.equal()
            found = other if truthy(found) else found
        return found

    def equal(self) -> Any:
        found = self.one()
        while self.left and self.left[0] in ("==", "!="):
            same = self.left.pop(0) == "=="
            found = (shown(found).lower() == shown(self.one()).lower()) is same
        return found

    def one(self) -> Any:
        if self.take("!"):
            return not truthy(self.one())
        if self.take("("):
            found = self.either()
            assert self.take(")")
            return found
        token = self.left.pop(0)
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if self.take("("):
            return _FUNCTIONS[token](self.context, *self.arguments())
        return _looked_up(token, self.context)

    def arguments(self) -> list[Any]:
        found: list[Any] = []
        while not self.take(")"):
            found.append(self.either())
            self.take(",")
        return found


def _looked_up(name: str, context: Mapping[str, Any]) -> Any:
    found: Any = context
    first, *rest = name.split(".")
    if first in ("true", "false"):
        return first == "true"
    if first not in context:
        raise ValueError(f"unknown context {first!r}")
    found = context[first]
    for part in rest:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _contains(_: Mapping[str, Any], where: Any, what: Any) -> bool:
    if isinstance(where, list):
        return what in where
    return shown(what).lower() in shown(where).lower()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "contains": _contains,
    "fromJSON": lambda _, text: json.loads(text),
    "always": lambda _: True,
    "success": lambda context: not context["failed"],
    "failure": lambda context: context["failed"],
    "cancelled": lambda _: False,
}
