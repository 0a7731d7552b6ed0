"""Is a score above its bar? Per filter, with its interval, and "not enough data" allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.analysis.statistics import Z95, wilson
from infx.domain.record import FilterScore, PointRecord, Score

__all__ = ["Answer", "FilterVerdict", "judge_record", "judge_score"]

Answer = Literal["pass", "fail", "undecided", "no-bar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterVerdict:
    """What one filter of a task says: shares in 0 … 1; ``low`` and ``high`` bound the true share
    with 95 % confidence (Wilson). ``bar`` is None when there is none to be missed."""

    filter: str
    score: float
    stderr: float
    low: float
    high: float
    bar: float | None
    answer: Answer
    sentence: str


def judge_record(record: PointRecord) -> list[FilterVerdict]:
    """Return the verdicts on an evaluation that is ``ok``; none on one that may not count."""
    score = record.score
    if record.status.state != "ok" or not score or not score.questions:
        return []
    return judge_score(score)


def judge_score(score: Score) -> list[FilterVerdict]:
    """Return one verdict a filter, in the order of the record.

    ``pass``: the whole interval is at or above the bar. ``fail``: all of it is below.
    ``undecided``: the bar is inside, so chance decides on which side of it the score fell, and more
    questions are needed. ``no-bar``: nothing to compare with; a bar of 0 is none, since no score
    misses it.
    """
    return [_judge(name, found, score.questions) for name, found in score.filters.items()]


def _judge(name: str, found: FilterScore, questions: int) -> FilterVerdict:
    low, high = _interval(found, questions)
    bar = found.bar if found.bar and found.bar > 0 else None
    answer = _answer(low, high, bar)
    return FilterVerdict(
        filter=name,
        score=found.score,
        stderr=found.stderr,
        low=low,
        high=high,
        bar=bar,
        answer=answer,
        sentence=_sentence(answer, found, questions, (low, high)),
    )


def _interval(found: FilterScore, questions: int) -> tuple[float, float]:
    """Return Wilson's interval of a share; of a metric that is none, ± 1.96 standard errors."""
    if 0 <= found.score <= 1:
        return wilson(found.score, questions)
    return found.score - Z95 * found.stderr, found.score + Z95 * found.stderr


def _answer(low: float, high: float, bar: float | None) -> Answer:
    if bar is None:
        return "no-bar"
    if low >= bar:
        return "pass"
    return "fail" if high < bar else "undecided"


def _sentence(
    answer: Answer, found: FilterScore, questions: int, interval: tuple[float, float]
) -> str:
    asked = "1 question" if questions == 1 else f"{questions} questions"
    low, high = interval
    return (
        f"{found.score:.3f} ± {found.stderr:.3f} over {asked}"
        + {
            "no-bar": ": no bar is set",
            "pass": f": at or above the bar of {found.bar}",
            "undecided": f": the bar of {found.bar} is inside the 95 % interval "
            f"{low:.3f} – {high:.3f}: not enough data",
            "fail": f": below the bar of {found.bar}",
        }[answer]
    )
