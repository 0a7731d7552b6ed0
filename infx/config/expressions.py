"""The expression language: an allow-list of Python's expression syntax over named axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Expression"]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: its text, the names it needs, and ``evaluate(values)``."""

    text: str
    names: frozenset[str]
    evaluate: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)
