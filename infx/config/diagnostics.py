"""Findings as text: the place, the source line with a caret, the hint. Pure; colour is the CLI's.

What a terminal would obey (control characters, marks of direction) is shown as an escape.

configs/quickstart.yaml:12:9: unknown-key `max-num-seq` is not an axis
   12 |         max-num-seq: 4
      |         ^~~~~~~~~~~
      = did you mean `max-num-seqs`?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from infx.domain.codes import CODES
from infx.domain.findings import Finding, Where

__all__ = ["format_finding", "format_findings"]

_WORD = re.compile(r"[\w.*/+-]*")
_WIDEST = 100


def format_findings(findings: Sequence[Finding], line_of: Callable[[Where], str | None]) -> str:
    """Return all findings as text, each with its source line.

    ``line_of`` gives the source line of a place, or None (`Project.source_line` reads files).
    """
    return "\n".join(
        format_finding(finding, line_of(finding.where) if finding.where else None)
        for finding in findings
    )


def format_finding(finding: Finding, source: str | None = None) -> str:
    """Return one finding as one to four lines; ``source`` is the line of the file it is about.

    An error without a hint of its own is told with what its code says to do.
    """
    place = f"{finding.where}: " if finding.where else ""
    lines = [_visible(f"{place}{finding.code} {finding.sentence}")]
    number = str(finding.where.line) if finding.where else ""
    if finding.where and finding.where.line and source is not None:
        text, col = _window(source.replace("\t", " "), finding.where.col)
        indent = " " * len(_visible(text[: col - 1]).ljust(col - 1))
        lines.append(f"{number:>5} | {_visible(text)}")
        lines.append(f"{'':5} | {indent}{_caret(text, col)}".rstrip())
    if hint := finding.hint or _action(finding):
        lines.append(f"{'':5} = {_visible(hint)}")
    return "\n".join(lines)


def _action(finding: Finding) -> str:
    code = CODES.get(finding.code) if finding.level == "error" else None
    return code.action if code else ""


def _visible(text: str) -> str:
    """Return ``text`` with what a terminal would obey, or not show, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _caret(text: str, col: int) -> str:
    word = _WORD.match(text[max(col - 1, 0) :])
    return "^" + "~" * max((len(word[0]) if word else 1) - 1, 0)


def _window(text: str, col: int) -> tuple[str, int]:
    """Return at most 100 characters of a line around a column, and the column in them."""
    if len(text) <= _WIDEST:
        return text, col
    start = max(0, min(col - _WIDEST // 2, len(text) - _WIDEST))
    head, tail = "…" * (start > 0), "…" * (start + _WIDEST < len(text))
    return f"{head}{text[start : start + _WIDEST]}{tail}", col - start + len(head)
