"""The report as Markdown for a pull request's comment: verdict, gates, frontiers, accuracy.

A comment holds 65,536 characters. What does not fit is left out from the ends of lists, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from infx.report.figures import count
from infx.report.markdown_parts import Cut, code_block, folded, safe, table
from infx.report.markdown_points import frontiers, lost, regressions
from infx.report.markdown_runs import accuracy, changed, excluded, runs
from infx.report.model import Level, ReportModel

__all__ = ["LIMIT", "markdown", "write_markdown"]

LIMIT = 60_000
"""Characters of a comment: GitHub takes 65,536, and a bot may add a line of its own."""

_WORD: dict[Level, str] = {"good": "PASS", "note": "NOTE", "attention": "CHECK", "bad": "FAIL"}

_MOST = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
"""How many entries of a list are shown, the first of these with which the whole fits."""

_TOLD_BELOW = ("Points", "Coverage", "Baseline")

Section = Callable[[ReportModel, Cut], list[str]]


def markdown(model: ReportModel, limit: int = LIMIT) -> str:
    """Return the summary, shorter than ``limit`` characters (of 60,000: a list of one entry and
    short texts always fit); no text from records is read as markup, as a link or as a mention."""
    for most in _MOST:
        text = _whole(model, Cut(most))
        if len(text) < limit:
            return text
    return _whole(model, Cut(1, longest=60))


def write_markdown(model: ReportModel, path: Path) -> None:
    """Write the summary to ``path`` (UTF-8)."""
    path.write_text(markdown(model), encoding="utf-8")


def _whole(model: ReportModel, cut: Cut) -> str:
    parts = [f"### {_WORD[model.level]}: {safe(cut.text(model.verdict))}"]
    for section in _SECTIONS:
        parts += section(model, cut)
    if cut.told:
        parts.append(f"Left out, to fit into a comment: {', '.join(cut.told)}.")
    return "\n\n".join(parts) + "\n"


def _gates(model: ReportModel, cut: Cut) -> list[str]:
    rows = [(gate.name, _WORD[gate.level], gate.sentence) for gate in model.gates]
    return [table(("Gate", "", "Answer"), rows, cut), *_cases(model, cut)]


def _cases(model: ReportModel, cut: Cut) -> list[str]:
    """Return the cases of the gates that are not in a table of their own below."""
    shown = [gate for gate in model.gates if gate.items and gate.name not in _TOLD_BELOW]
    parts = []
    for gate in shown:
        items = cut.few(gate.items, f"cases of {gate.name}")
        listed = "\n".join(f"- {safe(cut.text(item))}" for item in items)
        parts.append(folded(f"{gate.name}: {count(len(gate.items), 'case')}", [listed]))
    return parts


def _repro(model: ReportModel, cut: Cut) -> list[str]:
    rows = [row for row in model.rows if row.on_frontier]
    lines = [row.repro for row in cut.few(rows, "commands") if row.repro]
    if not lines:
        return []
    return [folded("Measure a frontier point again", [code_block(lines)])]


_SECTIONS: Sequence[Section] = (
    _gates, frontiers, changed, regressions, accuracy, lost, excluded, _repro, runs,
)  # fmt: skip
