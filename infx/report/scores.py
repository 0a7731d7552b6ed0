"""The evaluations of a report: each with its verdicts, and what to make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from infx.analysis.accuracy import judge_record
from infx.domain.point import short
from infx.domain.record import PointRecord
from infx.report.model import RunData, ScoreRow

__all__ = ["scores_of"]

FEW_QUESTIONS = 100
"""Below this many, the 95 % interval of a share is wider than a fifth."""


def scores_of(runs: Sequence[RunData]) -> tuple[ScoreRow, ...]:
    """Return a row for each evaluation of each run: another run's is another sample of answers."""
    pairs = [(run, r) for run in runs for r in run.records if r.point.mode == "evaluation"]
    seen: Counter[str] = Counter()
    rows = []
    for run, record in pairs:
        name = short(record.point.point_id)
        seen[name] += 1
        rows.append(
            ScoreRow(
                anchor=name if seen[name] == 1 else f"{name}-{seen[name]}",
                record=record,
                score=record.score,
                verdicts=tuple(judge_record(record)),
                note=_note(record),
                run=run.facts.run_id if len(runs) > 1 else "",
            )
        )
    return tuple(rows)


def _note(record: PointRecord) -> str:
    score, weights = record.score, record.point.arm.model.weights
    if not score or record.status.state != "ok":
        return record.status.sentence
    notes = [finding.sentence for finding in record.findings if finding.level == "warning"]
    if weights.startswith("random:"):
        notes.append(f"the weights are random ({weights}), so right answers are luck")
    elif not any(found.score for found in score.filters.values()):
        notes.append("no answer was right on any filter")
    if score.questions < FEW_QUESTIONS:
        notes.append(f"{score.questions} questions only: a check that it runs, not a score")
    return "; ".join(notes)
