"""What a misspelt word may have meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def closest(word: str, choices: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the choice most like ``word`` (case, hyphens and underscores are alike), or ``""``."""
    from difflib import get_close_matches

    plain = {_plain(choice): choice for choice in choices}
    found = get_close_matches(_plain(word), plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else ""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``did you mean `x`?``, or the list of choices when it is short, or ``""``."""
    known = sorted(choices)
    if found := closest(word, known):
        return f"did you mean `{found}`?"
    return f"known: {', '.join(known)}" if 0 < len(known) <= 20 else ""


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")
