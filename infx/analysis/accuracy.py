"""Is a score above its bar? Per filter, with its standard error, and "not enough data" allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.analysis.statistics import standard_error, wilson
from infx.domain.record import FilterScore, Score

__all__ = ["Answer", "FilterVerdict", "judge_score"]

Answer = Literal["pass", "fail", "undecided", "no-bar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterVerdict:
    """What one filter of a task says: shares in 0 … 1; ``low`` and ``high`` bound the true share
    with 95 % confidence (Wilson)."""

    filter: str
    score: float
    stderr: float
    low: float
    high: float
    bar: float | None
    answer: Answer
    sentence: str


def judge_score(score: Score) -> list[FilterVerdict]:
    """Return one verdict a filter, in the order of the record.

    ``pass``: at or above the bar. ``undecided``: below the bar by less than one standard error, so
    more questions are needed. ``fail``: below it by more. ``no-bar``: nothing to compare with. The
    error that decides is the larger of the score's own and of a score that is exactly the bar: the
    first is 0 when all answers are wrong, however few they are.
    """
    return [_judge(name, found, score) for name, found in score.filters.items()]


def _judge(name: str, found: FilterScore, score: Score) -> FilterVerdict:
    low, high = wilson(found.score, score.questions)
    answer = _answer(found, score.questions)
    return FilterVerdict(
        filter=name,
        score=found.score,
        stderr=found.stderr,
        low=low,
        high=high,
        bar=found.bar,
        answer=answer,
        sentence=_sentence(answer, found, score.questions),
    )


def _answer(found: FilterScore, questions: int) -> Answer:
    if found.bar is None:
        return "no-bar"
    if found.score >= found.bar:
        return "pass"
    stderr = max(found.stderr, standard_error(found.bar, questions))
    return "undecided" if found.bar - found.score < stderr else "fail"


def _sentence(answer: Answer, found: FilterScore, questions: int) -> str:
    shown = f"{found.score:.3f} ± {found.stderr:.3f} over {questions} questions"
    return (
        shown
        + {
            "no-bar": ": no bar is set",
            "pass": f": at or above the bar of {found.bar}",
            "undecided": f": below the bar of {found.bar} by less than chance: not enough data",
            "fail": f": below the bar of {found.bar}",
        }[answer]
    )
