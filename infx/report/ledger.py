"""Why candidates were left out: the plan's counts by rule, with each rule's text."""

from __future__ import annotations

from collections.abc import Sequence

from infx.domain.codes import CODES
from infx.domain.plan import Candidate, Plan
from infx.report.model import Exclusion

__all__ = ["counts_of", "exclusions", "left_out_of"]


def counts_of(plans: Sequence[Plan]) -> dict[str, int]:
    """Return how many candidates of all plans became what."""
    kinds = dict.fromkeys(kind for plan in plans for kind in plan.counts)
    return {kind: sum(plan.counts.get(kind, 0) for plan in plans) for kind in kinds}


def left_out_of(plans: Sequence[Plan]) -> tuple[Candidate, ...]:
    """Return the listed candidates that were not run."""
    return tuple(c for plan in plans for c in plan.ledger if c.disposition != "run")


def exclusions(plans: Sequence[Plan]) -> tuple[Exclusion, ...]:
    """Return one row for each key of a plan's ``excluded_by``, in the plans' order.

    A key is the text of an exclude rule, the code of a refusal, or ``code: sentence`` where one
    code has several sentences.
    """
    return tuple(row for plan in plans for row in _exclusions(plan))


def _exclusions(plan: Plan) -> tuple[Exclusion, ...]:
    reasons: dict[str, set[str]] = {}
    for candidate in plan.ledger:
        if candidate.disposition != "run" and candidate.sentence:
            reasons.setdefault(candidate.rule, set()).add(candidate.sentence)
    return tuple(
        _exclusion(key, number, reasons.get(key, set())) for key, number in plan.excluded_by.items()
    )


def _exclusion(key: str, candidates: int, reasons: set[str]) -> Exclusion:
    """Say why with the key's own sentence, else with the one reason that all candidates share."""
    reason = next(iter(reasons)) if len(reasons) == 1 else ""
    code, _, sentence = key.partition(": ")
    if code not in CODES:
        return Exclusion(code="", text=f"{key}: {reason}" if reason else key, candidates=candidates)
    text = sentence or reason or CODES[code].meaning
    return Exclusion(code=code, text=text, candidates=candidates)
