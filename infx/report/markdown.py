"""The report as Markdown for a pull request: verdict, gates, points, accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from infx.analysis.pareto import NORTH_STAR
from infx.report.figures import blank, figure, percent
from infx.report.model import Level, PointRow, ReportModel, ScoreRow, Series

__all__ = ["markdown", "write_markdown"]

_WORD: dict[Level, str] = {"good": "PASS", "note": "NOTE", "attention": "CHECK", "bad": "FAIL"}

_NEUTRAL = str.maketrans(
    {character: f"\\{character}" for character in "\\[]!*_`"}
    # Entities where a backslash is not enough: tables split at any bar, and a name after @ is
    # notified even when it is escaped, unless something stands between.
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;&#8203;"}
)


def markdown(model: ReportModel) -> str:
    """Return the summary; no text from records is read as markup, as a link or as a mention."""
    parts = [
        f"### {_WORD[model.level]}: {_safe(model.verdict)}",
        _table(
            ("Gate", "", "Answer"),
            [(gate.name, _WORD[gate.level], gate.sentence) for gate in model.gates],
        ),
        *_points(model.rows),
        *_workloads(model.series),
        *_accuracy(model.scores),
        f"Run {_safe(model.facts.run_id)}. p90 is the slow tail; ★ is on the deciding frontier "
        f"({NORTH_STAR.x_label} against throughput per GPU).",
    ]
    return "\n\n".join(parts) + "\n"


def write_markdown(model: ReportModel, path: Path) -> None:
    """Write the summary to ``path`` (UTF-8)."""
    path.write_text(markdown(model), encoding="utf-8")


def _points(rows: Sequence[PointRow]) -> list[str]:
    if not rows:
        return ["No throughput point has a record."]
    heads = (
        "Entry", "Point", "conc", "Requests", "Throughput tok/s/GPU", "P90 E2E-norm. tok/s/user",
        "P90 interactivity tok/s/user", "P90 TTFT ms", "P90 E2EL s", "Prefix hits", "Status",
    )  # fmt: skip
    return [_table(heads, [_point(row) for row in rows])]


def _workloads(series: Sequence[Series]) -> list[str]:
    told = dict.fromkeys(f"- {_safe(f'{one.entry}: {one.workload}')}" for one in series)
    return ["\n".join(told)] if told else []


def _point(row: PointRow) -> tuple[str, ...]:
    seen, point = row.record.measurement, row.record.point
    star = " ★" if NORTH_STAR.key in row.frontiers else ""
    figures = (
        [
            seen.tput_tok_s_gpu,
            seen.e2e_interactivity_tok_s.p90,
            seen.interactivity_tok_s.p90,
            seen.ttft_ms.p90,
            seen.e2el_ms.p90 / 1000,
        ]
        if seen
        else [None] * 5
    )
    counters = row.record.counters
    return (
        row.series.label,
        f"{row.name}{star}",
        str(point.conc),
        str(seen.requests.ok) if seen else blank,
        *(figure(value) for value in figures),
        percent(counters.prefix_cache_hit_share if counters else None),
        str(row.record.status),
    )


def _accuracy(scores: Sequence[ScoreRow]) -> list[str]:
    rows = [cells for row in scores for cells in _score(row)]
    heads = ("Server", "Task", "Filter", "Score ± SE", "Bar", "Empty", "Cut", "Answer")
    notes = [f"- {_safe(f'{r.record.point.entry}: {r.note}')}" for r in scores if r.note]
    return ([_table(heads, rows)] if rows else []) + (["\n".join(notes)] if notes else [])


def _score(row: ScoreRow) -> list[tuple[str, ...]]:
    score, entry = row.score, row.record.point.entry
    if not score or not row.verdicts:
        return [(entry, row.record.point.name, *[blank] * 5, str(row.record.status))]
    task = f"{score.task}, {score.questions} questions, {score.shots}-shot"
    return [
        (
            entry,
            task,
            found.filter,
            f"{found.score:.3f} ± {found.stderr:.3f}",
            blank if found.bar is None else f"{found.bar:g}",
            str(score.empty),
            str(score.cut),
            found.answer,
        )
        for found in row.verdicts
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_safe, line))} |" for line in lines)


def _safe(text: str) -> str:
    """Return ``text`` on one line, with every character that Markdown would read made plain."""
    return " ".join(text.translate(_NEUTRAL).split())
