"""Two evaluations of the same questions: question by question, and word by word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.analysis.paired import PairedVerdict, pair
from infx.analysis.pairing import Pair, Seen
from infx.domain.errors import MeasurementError

__all__ = ["ScoreChange", "compare_scores"]

SAMPLES = "samples.jsonl"
"""lm-eval's rows, one a question and filter, in an evaluation's folder."""

Answers = Mapping[str, Mapping[str, bool]]
"""By filter, then by question: was it answered rightly?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """How one filter's score changed; ``identical`` is the share of questions that both sides
    answered with the same text."""

    filter: str
    verdict: PairedVerdict
    identical: float


def compare_scores(couple: Pair) -> tuple[ScoreChange, ...] | str:
    """Return the change of each filter that scores right or wrong, or why there is none to tell."""
    before, after = (side.record.score if side.record else None for side in (couple.a, couple.b))
    if not before or not after:
        return "a side has no score"
    if before.questions_hash != after.questions_hash:
        return "the questions differ"
    try:
        rows = [_rows(side) for side in (couple.a, couple.b)]
        return _changes(rows[0], rows[1])
    except (MeasurementError, ValueError) as error:
        return str(error)


def _changes(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> tuple[ScoreChange, ...] | str:
    first, second = _answers(before), _answers(after)
    identical = _identical(_texts(before), _texts(after))
    changes = tuple(
        ScoreChange(filter=name, verdict=pair(first[name], second[name]), identical=identical)
        for name in first
        if name in second
    )
    return changes or "no filter of the task scores right or wrong"


def _rows(side: Seen) -> list[Mapping[str, Any]]:
    assert side.record
    path = side.folder / side.record.artifacts.get("lm-eval", "") / SAMPLES
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        message = f"{side.point.label}: {path} cannot be read: {error}"
        raise MeasurementError("unreadable-export", message) from error


def _answers(rows: Sequence[Mapping[str, Any]]) -> Answers:
    """Return what is 0 or 1 in each row; a filter of a task with several metrics is called
    ``metric,filter``, as in a score."""
    single = len({metric for row in rows for metric in row["metrics"]}) == 1
    found: dict[str, dict[str, bool]] = {}
    for row in rows:
        for metric in row["metrics"]:
            name = row["filter"] if single else f"{metric},{row['filter']}"
            if row[metric] in (0, 1):
                found.setdefault(name, {})[str(row["doc_id"])] = bool(row[metric])
    return found


def _texts(rows: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    return {str(row["doc_id"]): row["resps"] for row in rows}


def _identical(before: Mapping[str, object], after: Mapping[str, object]) -> float:
    same = sum(text == after.get(question) for question, text in before.items())
    return same / len(before) if before else 0.0
