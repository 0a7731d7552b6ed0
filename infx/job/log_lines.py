"""The line of a log that says what went wrong."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["exception_line", "fault_line", "line_with", "useful_line"]

# The last line of a Python traceback, with or without a logger's prefix: "ValueError: no model".
_EXCEPTION = re.compile(
    r"(?:^|[\s\])])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Refusal): \S"
)
_FAULT = re.compile(
    r"\b(error|fatal|failed|failure|cannot|could not|refused|out of memory|killed|abort\w*)\b", re.I
)
_HEAD_BYTES = 4 << 20
_WIDTH = 300


def useful_line(log: Path, start: int = 0) -> str:
    """Return the first line of ``log`` after byte ``start`` that names a fault, cut to 300 signs.

    First an exception's own line (the first of a chain is the cause), else a line with a word such
    as *error* or *failed*, else the last line; ``no output`` when there is none.
    """
    lines = _lines(log, start)
    told = _first(lines, _EXCEPTION) or _first(lines, _FAULT)
    return told or (lines[-1][:_WIDTH] if lines else "no output")


def exception_line(log: Path) -> str:
    """Return the first line of ``log`` that is an exception's own; "" where there is none."""
    return _first(_lines(log), _EXCEPTION)


def fault_line(log: Path) -> str:
    """Return the first line of ``log`` with a word such as *error*; "" where there is none."""
    return _first(_lines(log), _FAULT)


def line_with(log: Path, words: str) -> str:
    """Return the first line of ``log`` that holds ``words``, however long it is; "" where there is
    none."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            return next((line.strip()[:_WIDTH] for line in file if words in line), "")
    except OSError:
        return ""


def _lines(log: Path, start: int = 0) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(start)
            text = file.read(_HEAD_BYTES).decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]


def _first(lines: list[str], pattern: re.Pattern[str]) -> str:
    return next((line[:_WIDTH] for line in lines if pattern.search(line)), "")
