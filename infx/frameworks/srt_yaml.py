"""A recipe as YAML text: keys in their order, a text of several lines as a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

__all__ = ["yaml_text"]


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text and text.isascii() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(content: Mapping[str, Any], head: str = "") -> str:
    """Return ``content`` as YAML, with the lines of ``head`` as a comment before it."""
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    body = yaml.dump(dict(content), Dumper=_Dumper, sort_keys=False, width=100)
    return comment + body
