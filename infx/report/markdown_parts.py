"""Markdown from texts that others wrote: tables, folds, and lists that are cut and say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = ["Cut", "bold", "code_block", "folded", "safe", "table"]

Item = TypeVar("Item")

_NEUTRAL = str.maketrans(
    {character: f"\\{character}" for character in "\\[]!*_`~"}
    # Entities where a backslash is not enough: tables split at any bar, and a name after @ is
    # notified, a number after # linked even when it is escaped, unless something stands between;
    # two dollar signs hold mathematics.
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;&#8203;"}
    | {"#": "&#35;&#8203;", "$": "&#36;"}
)
_ADDRESS = re.compile(r"://|www(?=\.)", re.IGNORECASE)
"""What GitHub makes a link of without being asked."""


class Cut:
    """Keeps lists to ``most`` entries and texts to ``longest`` characters; ``told`` says what of
    which list was left out."""

    def __init__(self, most: int, longest: int = 400) -> None:
        self.told: list[str] = []
        self._most, self._longest = most, longest

    def few(self, items: Sequence[Item], name: str) -> Sequence[Item]:
        """Return the first of ``items``, and remember how many ``name`` were left out."""
        if len(items) > self._most:
            self.told.append(f"{len(items) - self._most} {name}")
        return items[: self._most]

    def text(self, text: str) -> str:
        """Return the beginning of a text."""
        return text if len(text) <= self._longest else f"{text[: self._longest]}…"


def safe(text: str) -> str:
    """Return ``text`` on one line, with every character that Markdown would read made plain."""
    return _ADDRESS.sub(_parted, " ".join(text.translate(_NEUTRAL).split()))


def _parted(found: re.Match[str]) -> str:
    return f"{found[0][0]}&#8203;{found[0][1:]}"


def bold(text: str) -> str:
    """Return ``text`` as plain text in bold."""
    return f"**{safe(text)}**" if text.strip() else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], cut: Cut) -> str:
    """Return a table of plain texts."""
    lines = [heads, ["---"] * len(heads), *([cut.text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(map(safe, line))} |" for line in lines)


def folded(summary: str, parts: Sequence[str]) -> str:
    """Return ``parts`` behind a summary that opens them."""
    inner = "\n\n".join(parts)
    return f"<details><summary>{safe(summary)}</summary>\n\n{inner}\n\n</details>"


def code_block(lines: Iterable[str]) -> str:
    """Return lines as code; a fence longer than any run of backticks in them holds them."""
    text = "\n".join(lines)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sh\n{text}\n{fence}"
