"""The axes as JSON Schema, from `infx.domain.axes`; what `infx.config.axis_values` reads."""

from __future__ import annotations

from typing import Any

from infx.domain import axes
from infx.domain.axes import AXES, VOCABULARY, is_load, kebab, value_type

__all__ = ["EXPRESSION_SCHEMA", "axes_schema"]

EXPRESSION_SCHEMA: dict[str, Any] = {
    "type": "string",
    "description": "an expression over axes, spelt with underscores: 2*conc",
}


def axes_schema(*, several: bool, load: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of a mapping of axes; ``several``: an axis may list values; ``load``:
    what the client asks is among them."""
    names = [name for name in AXES if load or not is_load(name)]
    properties = {kebab(name): _axis_schema(name, several) for name in names}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _axis_schema(name: str, several: bool) -> dict[str, Any]:
    one = _value_schema(name)
    choices = [one, EXPRESSION_SCHEMA]
    if name in VOCABULARY:
        # A lone word is one of the values, or the name of another axis; all else is a slip.
        others = "|".join(other for other in AXES if other != name)
        choices[1] = EXPRESSION_SCHEMA | {"pattern": f"[^A-Za-z0-9_-]|^({others})$"}
    if several:
        choices.append({"type": "array", "items": one, "minItems": 1, "uniqueItems": True})
    if AXES[name].default is None:
        choices.append({"type": "null"})
    meta = AXES[name].metadata
    about = f"{meta['about']} ({meta['unit']})" if meta["unit"] else meta["about"]
    return {"description": about, "anyOf": choices}


def _value_schema(name: str) -> dict[str, Any]:
    number = {"type": "integer", "minimum": AXES[name].metadata["least"]}
    match value_type(name):
        case "int":
            return number
        case "bool":
            return {"type": "boolean"}
        case axes.SIZES:
            return {"type": "array", "items": number, "uniqueItems": True}
    return {"enum": list(VOCABULARY[name])}
