"""The rules about an evaluation: was it answered, and do the answers hold what a score needs?"""

from __future__ import annotations

from infx.analysis.evidence import Findings, Limits, beyond, error, percent, warning
from infx.domain.findings import Finding
from infx.domain.record import PointRecord

__all__ = ["cut_answers", "empty_answers", "no_score"]


def no_score(record: PointRecord, limits: Limits) -> Findings:
    """Without an answered question there is nothing to compare with a bar."""
    if not record.score or not record.score.questions:
        yield error("no-requests", "lm-eval scored no question")


def empty_answers(record: PointRecord, limits: Limits) -> Findings:
    """An answer without text scores 0 without a word from the harness."""
    score = record.score
    if score and score.questions and score.empty:
        share = score.empty / score.questions
        text = f"{score.empty} of {score.questions} answers hold no text ({percent(share)})"
        level = beyond(share, limits.empty_share)
        yield Finding("empty-answers", level, f"{text}, limit {percent(limits.empty_share)}")


def cut_answers(record: PointRecord, limits: Limits) -> Findings:
    """An answer that is cut before its number counts as wrong: the limit is scored, not the model.

    A small model that never ends its answers is cut too, so this warns and does not refuse.
    """
    score = record.score
    if score and score.questions and score.cut > limits.cut_share * score.questions:
        share = percent(score.cut / score.questions)
        at = f" of {score.max_tokens} tokens" if score.max_tokens else ""
        text = f"{score.cut} of {score.questions} answers hit the limit{at} ({share})"
        yield warning("cut-answers", text)
