"""A mapping of a file checked against its model, with each fault put at its key or value.

What conforms to the written JSON Schema is sound; only the rest is shown to pydantic, which is slow
to import and says what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from infx.config.conformity import conforms
from infx.config.names import (
    AS_OF,
    DIRECTIVE,
    ENV_GLOB,
    HOST,
    IMAGE,
    LINE,
    NAME,
    NAME_HINT,
    NODES,
    PATH,
    PROGRAM,
    SLURM_NAME,
)
from infx.config.nodes import ListNode, MapNode, Node, Report, ScalarNode, plain
from infx.config.project import packaged
from infx.config.suggestions import did_you_mean
from infx.domain.axes import snake
from infx.domain.findings import Where

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from infx.config.sections import Section

__all__ = ["shaped", "wrong_type"]

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
}
_RANGES = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "too_short": "at least {min_length} item",
    "string_too_short": "some text",
}

_PATTERNS = {
    NAME: NAME_HINT,
    LINE: "write one line without control characters (a folded text starts with >-)",
    PATH: "write an absolute path there, without quotes and backslashes",
    SLURM_NAME: "use letters, digits and _.,+@-",
    NODES: "write a host list of Slurm: node[3-4],node7",
    PROGRAM: "write an absolute path there, or the name of a program",
    HOST: "write a host of ~/.ssh/config",
    IMAGE: "write an image's reference, or the path of a .sqsh file",
    ENV_GLOB: "write a variable's name, with * for any letters",
    AS_OF: "write YYYY-MM or YYYY-MM-DD in quotes",
    DIRECTIVE: "write a long option of sbatch in one word: --constraint=h200",
}


def shaped(node: Node, section: str, what: str, report: Report) -> dict[str, Any] | None:
    """Return the fields of the mapping ``node``, defaults filled in, by their names in Python.

    ``section`` names a pydantic model of the files; ``what`` names the mapping for people ("a
    recipe"). None after reporting all that is wrong with it; scalars that were reported when the
    file was read are not reported again.
    """
    if not isinstance(node, MapNode):
        wrong_type(node, what, "a mapping", report)
        return None
    values, schema = plain(node), _definitions()[section]
    if conforms(values, schema, _definitions()):
        return {
            snake(key): values.get(key, about.get("default"))
            for key, about in schema["properties"].items()
        }
    return _validated(values, node, section, what, report)


@cache
def _definitions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("matrix", "recipe", "clusters", "hardware"):
        text = (packaged() / "configs" / "schema" / f"{name}.json").read_text("utf-8")
        found |= json.loads(text)["$defs"]
    return found


def _validated(
    values: Any, node: MapNode, section: str, what: str, report: Report
) -> dict[str, Any] | None:
    from pydantic import ValidationError

    from infx.config.schema import model_of

    model = model_of(section)
    try:
        return dict(model.model_validate(values))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _report(detail, node, model, what, report)
        return None


def wrong_type(node: Node, what: str, expected: str, report: Report, hint: str = "") -> None:
    """Report that ``node``, called ``what``, is not what was ``expected``."""
    if isinstance(node, ScalarNode) and node.faulty:
        return
    report.error("wrong-type", f"{what} is {_shown(node)}; expected {expected}", node.where, hint)


def _report(
    detail: ErrorDetails, node: MapNode, model: type[Section], what: str, report: Report
) -> None:
    kind, loc, context = detail["type"], detail["loc"], detail.get("ctx", {})
    key = str(loc[-1])
    if kind == "missing":
        report.error("missing-key", f"{what} has no `{key}`", node.where, "add it")
        return
    if kind in ("extra_forbidden", "invalid_key"):
        hint = did_you_mean(key, _aliases(model))
        report.error("unknown-key", f"`{key}` is not a key of {what}", _key(node, loc), hint)
        return
    found = _found(node, loc)
    if kind == "string_pattern_mismatch" and loc[-1] == "[key]":
        report.error("bad-name", f"`{loc[-2]}` cannot be a name here", _key(node, loc[:-1]))
    elif not (isinstance(found, ScalarNode) and found.faulty):
        _value_fault(kind, ".".join(map(str, loc)), found, context, report)


def _value_fault(
    kind: str, name: str, found: Node, context: dict[str, Any], report: Report
) -> None:
    shown = f"`{name}` is {_shown(found)}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        hint = did_you_mean(found.text if isinstance(found, ScalarNode) else "", choices)
        report.error("unknown-value", f"{shown}, which is not known", found.where, hint)
    elif kind == "string_pattern_mismatch":
        hint = _PATTERNS.get(context["pattern"], f"the pattern is {context['pattern']}")
        report.error("bad-name", f"{shown}, which cannot be", found.where, hint)
    elif kind in _RANGES:
        expected = _RANGES[kind].format(**context)
        report.error("out-of-range", f"{shown}; expected {expected}", found.where)
    else:
        expected = _EXPECTED.get(kind, kind.replace("_", " "))
        hint = "quote it" if kind == "string_type" and isinstance(found, ScalarNode) else ""
        hint = "compare an axis: conc > 2" if name == "when" else hint
        wrong_type(found, f"`{name}`", expected, report, hint)


def _found(node: Node, loc: Sequence[int | str]) -> Node:
    for part in loc:
        below: Node | None = None
        if isinstance(node, MapNode):
            below = node.get(part)
        elif isinstance(node, ListNode) and isinstance(part, int):
            below = node.items[part]
        if below is None:
            return node
        node = below
    return node


def _key(node: MapNode, loc: Sequence[int | str]) -> Where:
    parent = _found(node, loc[:-1])
    return parent.keys.get(loc[-1], parent.where) if isinstance(parent, MapNode) else parent.where


def _aliases(model: type[Section]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(node: Node) -> str:
    match node:
        case MapNode():
            return "a mapping"
        case ListNode():
            return "a list"
        case ScalarNode(value=None):
            return "nothing"
    return f'the text "{node.text}"' if isinstance(node.value, str) else node.text
