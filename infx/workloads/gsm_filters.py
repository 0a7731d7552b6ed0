"""What the lm-eval tasks of infx call back. Copied beside each task's YAML, so that the folder
works without infx: it imports nothing of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["NO_NUMBER", "last_number", "load", "normal_form"]

NO_NUMBER = "[invalid]"
"""What lm-eval's own filters give for an answer without a match."""

# A sign counts only where it cannot be a minus between two operands or a dash in a word.
_NUMBER = re.compile(
    r"(?:(?<![\w)\].])[-\u2212])?\$?((?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+)?|\.\d+)"
)


def load(train: str, test: str, **_: Any) -> dict[str, Any]:
    """Return the splits read from two JSON-lines files, as datasets held in memory.

    Relative paths start from this file's folder.
    """
    from datasets import Dataset

    here = Path(__file__).parent
    return {
        split: Dataset.from_list(_rows(here / path))
        for split, path in (("train", train), ("test", test))
    }


def last_number(
    answers: Iterable[Sequence[str]], docs: Sequence[Mapping[str, Any]]
) -> list[list[str]]:
    """Return, for each answer of each question, the normal form of its last number."""
    return [[normal_form(answer) for answer in group] for group in answers]


def normal_form(answer: str) -> str:
    """Return the last number of a text without sign of currency, percent, thousands commas, or
    empty decimals (``"$1,234.00."`` gives ``"1234"``); NO_NUMBER when it holds none."""
    matches = list(_NUMBER.finditer(answer or ""))
    if not matches:
        return NO_NUMBER
    last = matches[-1]
    # As text: int() refuses more than 4,300 digits, which a model that repeats itself writes.
    whole, _, decimals = last[1].replace(",", "").partition(".")
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    value = f"{whole}.{decimals}" if decimals else whole
    return f"-{value}" if last[0][0] in "-\u2212" and value != "0" else value


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
