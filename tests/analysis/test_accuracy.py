from __future__ import annotations

import pytest

from infx.analysis.accuracy import judge_score
from infx.analysis.statistics import standard_error
from infx.domain.record import FilterScore, Score


def scored(share: float, bar: float | None, questions: int = 1319) -> Score:
    found = FilterScore(score=share, stderr=standard_error(share, questions), bar=bar)
    return Score(
        task="gsm8k", questions=questions, limit=None, shots=5,
        filters={"strict-match": found}, questions_hash="h",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("share", "bar", "questions", "answer"),
    [
        (0.969, 0.90, 1319, "pass"),
        (0.90, 0.90, 1319, "pass"),
        (0.8802, 0.90, 1319, "fail"),
        (0.896, 0.90, 1319, "undecided"),
        (0.0, 0.02, 6, "undecided"),
        (0.0, 0.90, 6, "fail"),
        (0.0, None, 64, "no-bar"),
        (0.0, 0.0, 64, "pass"),
    ],
)
def test_answers(share: float, bar: float | None, questions: int, answer: str) -> None:
    (verdict,) = judge_score(scored(share, bar, questions))
    assert verdict.answer == answer
    assert verdict.low <= share <= verdict.high
    assert str(questions) in verdict.sentence


def test_each_filter_has_its_own_bar() -> None:
    score = scored(0.9416, 0.90)
    filters = {
        "flexible-extract": FilterScore(score=0.9416, stderr=0.0065, bar=0.93),
        "strict-match": FilterScore(score=0.8802, stderr=0.0089, bar=0.90),
    }
    verdicts = judge_score(
        Score(task=score.task, questions=1319, limit=None, shots=5, filters=filters,
              questions_hash="h")
    )  # fmt: skip
    assert [(v.filter, v.answer) for v in verdicts] == [
        ("flexible-extract", "pass"),
        ("strict-match", "fail"),
    ]
