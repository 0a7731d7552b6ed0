from __future__ import annotations

from dataclasses import replace

import pytest

from infx.analysis.accuracy import judge_record, judge_score
from infx.analysis.statistics import standard_error
from infx.domain.record import FilterScore, Score
from infx.domain.status import Status
from tests.report.sample_runs import LLAMA, evaluation, record


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
        (0.90, 0.90, 1319, "undecided"),
        (0.91, 0.90, 1319, "undecided"),  # above the bar, but by less than chance
        (1.0, 0.90, 1, "undecided"),
        (1.0, 0.90, 34, "undecided"),
        (1.0, 0.90, 35, "pass"),
        (0.8802, 0.90, 1319, "fail"),
        (0.896, 0.90, 1319, "undecided"),
        (0.0, 0.02, 6, "undecided"),
        (0.0, 0.90, 6, "fail"),
        (0.0, None, 64, "no-bar"),
        (0.0, 0.0, 64, "no-bar"),
        (0.5, -1.0, 64, "no-bar"),
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
        "flexible-extract": FilterScore(score=0.9416, stderr=0.0065, bar=0.92),
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


def test_only_an_evaluation_that_is_ok_is_judged() -> None:
    good = record(evaluation(LLAMA, 0.9), score=scored(0.97, 0.9))
    assert [v.answer for v in judge_record(good)] == ["pass"]
    bad = replace(good, status=Status("invalid", "config-differs", "dtype is bf16"))
    assert judge_record(bad) == []
    assert judge_record(replace(good, score=None)) == []


def test_a_metric_that_is_no_share_has_an_interval_too() -> None:
    (verdict,) = judge_score(scored(0.5, 12.0))
    assert verdict.answer == "fail"
    found = FilterScore(score=13.0, stderr=0.1, bar=12.0)
    (verdict,) = judge_score(replace(scored(0.5, 12.0), filters={"bleu": found}))
    assert (verdict.answer, round(verdict.low, 2)) == ("pass", 12.8)
