"""Something that a text says, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from infx.review.bundle import Bundle

__all__ = ["Claim", "Reader"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The kind, its words, where they stand; ``truth`` is "" when they hold. ``figure``: it is a
    measured number, which nobody may have by mistake."""

    kind: str
    text: str
    where: str
    truth: str = ""
    figure: bool = False


Reader = Callable[[str, str, Bundle], Iterator[Claim]]
"""Reads a line of a text, with where it stands, against a bundle."""
