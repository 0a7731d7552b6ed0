"""Something that a text says, and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.review.texts import Line
    from infx.review.truth import Truth

__all__ = ["Claim", "Reader", "claimed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The kind, its words, where they stand, and between which characters of the line.

    ``truth`` is what holds instead, "" when the words do. ``derivable`` False: nothing in the
    bundle says whether they hold. ``figure``: it is a measured number, which nobody may have by
    mistake.
    """

    kind: str
    text: str
    where: str
    span: tuple[int, int]
    truth: str = ""
    derivable: bool = True
    figure: bool = False


Reader = Callable[["Line", "Truth"], Iterator[Claim]]
"""Reads a line of a text against what the bundle holds."""


def claimed(kind: str, span: tuple[int, int], line: Line, truth: str = "") -> Claim:
    """Return the claim that the words of a line between two characters make."""
    text = line.text[slice(*span)].strip()
    return Claim(kind=kind, text=text, where=line.where, span=span, truth=truth)
