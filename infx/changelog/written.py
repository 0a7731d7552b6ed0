"""An entry as the bytes that stand in the file: nobody types them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

__all__ = ["written"]

_BARE = re.compile(r"XXX|https://[\w./-]+|[A-Za-z][\w.]*-[\w.-]*\w")


def written(
    keys: Iterable[str], scenario_types: Iterable[str], description: Iterable[str], pr_link: str
) -> str:
    """Return one entry as YAML text; without a scenario type it is of evaluations alone.

    Descriptions are double-quoted, so that no text can be read as something else; the entry ends
    with one newline and holds no tab.
    """
    types = [f"    - {name}" for name in scenario_types]
    lines = ["- config-keys:", *(f"    - {_name(key)}" for key in keys)]
    lines += ["  scenario-type:", *types] if types else []
    lines += ["  description:", *(f"    - {_quoted(text)}" for text in description)]
    lines += [] if types else ["  evals-only: true"]
    return "\n".join([*lines, f"  pr-link: {_name(pr_link)}"]) + "\n"


def _quoted(text: str) -> str:
    """Return a YAML double-quoted scalar: JSON's, with what cannot be printed as a YAML escape.

    JSON escapes a character outside the first plane as two surrogates, which YAML does not join.
    """
    printed = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in printed)


def _name(text: str) -> str:
    """Return a key or address as it is usually written: bare where nothing else can be read."""
    return text if _BARE.fullmatch(text) else _quoted(text)
