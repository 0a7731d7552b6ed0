"""The lines that claims are read from: title, body and changelog of a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infx.changelog.entry import PLANNED, SINCE
from infx.review.bundle import Bundle

__all__ = ["BODY", "Line", "lines_of"]

BODY = "pull-request.json:body"
"""Where the lines of the body stand."""

_LINK = re.compile(r"https?://[^\s<>()|]+|\]\([^()\s]*\)")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?[ \t]*")
_CELL = re.compile(r"[*_`~]*[±~≈]?\d[\d,.]*(?:e[+-]?\d+)?[ ]?%?[*_`]*")
_UNIT = re.compile(
    r"tok(?:en)?s?/s/(?:GPU|user)|(?<=\()[a-zµ%/]+(?=\))|(?<=, )(?:ms|s)$|%", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line and where it stands. ``own``: it is of the title or the body, whose every number is
    accounted for; a changelog may tell history."""

    text: str
    where: str
    own: bool = True


def lines_of(bundle: Bundle) -> Iterator[Line]:
    """Yield the lines of the title, the body and the changelog's new entries.

    Addresses are blank (what they name is not said by the text), comments too (no reader sees
    them), and a number that stands alone in
    a cell of a table has the words of its column around it.
    """
    yield Line(_bare(bundle.pull_request.title), "pull-request.json:title")
    seen = _HIDDEN.sub(lambda hit: "\n" * hit[0].count("\n"), bundle.pull_request.body)
    body = [_bare(line) for line in seen.splitlines()]
    for number, text in enumerate(_told(body), 1):
        yield Line(text, f"{BODY}:{number}")
    for addition in bundle.changelog:
        for text in addition.description:
            if text.startswith((SINCE, PLANNED)):
                continue  # of a run that no bundle holds, or of none: what plans differ in
            yield Line(_bare(text), f"changelog.json:line {addition.line}", own=False)


def _bare(line: str) -> str:
    return _LINK.sub(lambda hit: " " * len(hit[0]), line)


def _told(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with the rows of tables in the words of their columns."""
    heads: Sequence[str] = ()
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and "|" in line and _RULE.fullmatch(lines[number + 1]):
            heads = _cells(line)
            yield line
        elif "|" not in line:
            heads = ()
            yield line
        else:
            yield _row(_cells(line), heads)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _row(cells: Sequence[str], heads: Sequence[str]) -> str:
    named = [*heads, *[""] * (len(cells) - len(heads))]
    return " | ".join(_cell(cell, head) for cell, head in zip(cells, named, strict=False))


def _cell(cell: str, head: str) -> str:
    """Return a number in the words of its column: ``P90 TTFT, ms`` and 12: ``P90 TTFT 12 ms``."""
    if not head or not _CELL.fullmatch(cell):
        return cell
    number = cell.strip("*_`~ ")
    unit = _UNIT.search(head)
    if unit is None:
        return f"{head} {number}"
    name = (head[: unit.start()] + head[unit.end() :]).strip(" (),:")
    return f"{name} {number} {unit[0]}"
