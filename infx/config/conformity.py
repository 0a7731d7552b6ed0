"""Whether a value conforms to a JSON Schema, for the keywords that infx's schemas use.

A yes or no in microseconds: pydantic, which says what is wrong and where, takes 0.2 s to import,
half of what `infx plan` may take as a process, and a sound file need not pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["ANNOTATIONS", "conforms"]

Schema = Mapping[str, Any]
Definitions = Mapping[str, Schema]

ANNOTATIONS = frozenset({"$schema", "$defs", "title", "description", "default"})

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "integer": (int,),
}


def conforms(value: Any, schema: Schema, definitions: Definitions) -> bool:
    """Return True when ``value`` (plain data) conforms; ``definitions`` are the ``$defs``.

    Raises KeyError for a keyword it does not know, so that none is passed over.
    """
    return all(
        _KEYWORDS[keyword](value, said, schema, definitions)
        for keyword, said in schema.items()
        if keyword not in ANNOTATIONS
    )


def _type(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    names = [said] if isinstance(said, str) else said
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _TYPES[name]) for name in names)


def _properties(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    if not isinstance(value, dict):
        return True
    return all(conforms(value[k], said[k], definitions) for k in said.keys() & value.keys())


def _additional(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    others = value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else ()
    if isinstance(said, bool):
        return said or not others
    return all(conforms(value[key], said, definitions) for key in others)


def _names(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    return not isinstance(value, dict) or all(conforms(key, said, definitions) for key in value)


def _items(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    return not isinstance(value, list) or all(conforms(v, said, definitions) for v in value)


def _any_of(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
    return any(conforms(value, one, definitions) for one in said)


def _ref(value: Any, said: str, schema: Schema, definitions: Definitions) -> bool:
    return conforms(value, definitions[said.removeprefix("#/$defs/")], definitions)


def _for(kinds: type | tuple[type, ...], holds: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """Return a keyword that constrains values of some kinds and lets the others through."""

    def keyword(value: Any, said: Any, schema: Schema, definitions: Definitions) -> bool:
        return not isinstance(value, kinds) or isinstance(value, bool) or holds(value, said)

    return keyword


def _to_the_end(pattern: str) -> str:
    """Return a pattern of JSON Schema in Python, whose ``$`` would let a line's end through."""
    return f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern


_KEYWORDS: dict[str, Callable[[Any, Any, Schema, Definitions], bool]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "anyOf": _any_of,
    "$ref": _ref,
    "enum": lambda value, said, schema, definitions: value in said,
    "required": _for(dict, lambda value, said: value.keys() >= set(said)),
    "minimum": _for((int, float), lambda value, said: value >= said),
    "maximum": _for((int, float), lambda value, said: value <= said),
    "minLength": _for(str, lambda value, said: len(value) >= said),
    "minItems": _for(list, lambda value, said: len(value) >= said),
    "minProperties": _for(dict, lambda value, said: len(value) >= said),
    "uniqueItems": _for(list, lambda value, said: len(set(map(str, value))) == len(value)),
    "pattern": _for(str, lambda value, said: re.search(_to_the_end(said), value) is not None),
}
