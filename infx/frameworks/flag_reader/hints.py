"""What a field's annotation makes of the flag that is made from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from infx.frameworks.flag_reader.source import NotLiteralError, Place, Sources

__all__ = ["Flag", "Kind", "Term", "kind_of", "literal_choices", "terms"]

Kind = Literal["bool", "int", "float", "str", "tuple"]

_BUILTIN = ("bool", "int", "float", "str", "dict")
_LISTS = ("list", "List", "tuple", "Tuple", "set", "Set", "Sequence")

# The functions that turn a flag's word into a value, where that value is no text.
_NUMBERS: dict[str, Kind] = {
    "int": "int",
    "human_readable_int": "int",
    "human_readable_int_or_auto": "int",
    "float": "float",
}


@dataclass(slots=True)
class Flag:
    """One flag of a parser: as in the data file."""

    kind: Kind = "str"
    choices: list[Any] = field(default_factory=list)
    negatable: bool = False
    spellings: list[str] = field(default_factory=list)

    def row(self, about: str = "") -> dict[str, Any]:
        """Return the flag's object of the data file."""
        first, *others = sorted(self.spellings, key=lambda word: not word.startswith("--"))
        aliases = {"aliases": others} if others else {}
        choices = {"choices": [str(choice) for choice in self.choices]} if self.choices else {}
        negatable = {"negatable": True} if self.negatable else {}
        return {"flag": first, "kind": self.kind, **aliases, **choices, **negatable, "about": about}


@dataclass(frozen=True, slots=True)
class Term:
    """One member of a union: ``name`` is a builtin's, ``None``, ``Literal``, ``list`` (any list of
    values), ``record`` (a dataclass) or ``other``; ``values`` are those of a Literal, or of the
    Literal that a list is of."""

    name: str
    values: tuple[Any, ...] = ()


def kind_of(converter: str) -> Kind:
    """Return the kind of a flag whose ``type`` is the function called ``converter``."""
    return _NUMBERS.get(converter, "str")


def literal_choices(sources: Sources, choices: Place) -> list[Any]:
    """Return the values of ``choices=``; none where only a running program knows them."""
    node = choices.node
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "get_args":
        found = list(terms(sources, choices.at(node.args[0])))
        return [value for term in found for value in term.values]
    try:
        return list(sources.literal(choices))
    except (NotLiteralError, TypeError):
        return []


def terms(sources: Sources, hint: Place) -> Iterator[Term]:
    """Yield the members of the union that an annotation is, aliases followed."""
    match hint.node:
        case ast.Constant(value=None):
            yield Term("None")
        case ast.Constant(value=str(text)):
            yield from terms(sources, hint.at(ast.parse(text, mode="eval").body))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            yield from terms(sources, hint.at(left))
            yield from terms(sources, hint.at(right))
        case ast.Subscript(value=value, slice=inside):
            yield from _subscript(sources, hint, ast.unparse(value).rpartition(".")[2], inside)
        case ast.Name(id=name) if name in _BUILTIN:
            yield Term(name)
        case ast.Name(id=name) if name in _LISTS:
            yield Term("list")
        case _:
            yield from _named(sources, hint)


def _subscript(sources: Sources, hint: Place, name: str, inside: ast.expr) -> Iterator[Term]:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        yield Term("Literal", tuple(_literal_values(sources, hint, parts)))
    elif name in _LISTS:
        inner = (term for part in parts for term in terms(sources, hint.at(part)))
        yield Term("list", tuple(value for term in inner for value in term.values))
    elif name in ("dict", "Dict"):
        yield Term("dict")
    elif name in ("Annotated", "A", "SkipValidation", "InitVar"):
        yield from terms(sources, hint.at(parts[0]))
    elif name in ("Union", "Optional"):
        for part in parts:
            yield from terms(sources, hint.at(part))
    else:
        yield Term("other")


def _named(sources: Sources, hint: Place) -> Iterator[Term]:
    found = sources.resolve(hint)
    if found is None:
        yield Term("other")
    elif isinstance(found.node, ast.ClassDef):
        made = {ast.unparse(decorator).partition("(")[0] for decorator in found.node.decorator_list}
        yield Term("record" if made & {"config", "dataclass", "dataclasses.dataclass"} else "other")
    else:
        yield from terms(sources, found)


def _literal_values(sources: Sources, hint: Place, parts: list[ast.expr]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, ast.Constant):
            yield part.value
            continue
        for term in terms(sources, hint.at(part)):  # an alias of another Literal
            yield from term.values
