"""What is called a difference between two scores, and what chance alone would have given.

Two levels, because a gate and a reader ask different things: below `SURE` a change is called one;
between the two it is called *perhaps* one, to be measured again; only from `SEEN` on is no
difference seen. So a p of 0.016 is never told as none, and a sweep of many evaluations does not
call one in twenty of them worse.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal

__all__ = [
    "LEVELS",
    "POWER",
    "REACH",
    "SEEN",
    "SURE",
    "Z_POWER",
    "Z_SEEN",
    "Change",
    "called",
    "reason",
    "shown",
    "words",
]

Change = Literal[
    "worse",
    "perhaps-worse",
    "better",
    "perhaps-better",
    "no-difference-seen",
    "not-enough-data",
]

SURE = 0.01
"""A change is called one when chance alone gives as much in fewer cases than this."""

SEEN = 0.05
"""From this share of cases on no difference is seen."""

POWER = 0.8
"""A difference counts as detectable when it is seen (`SEEN`) in so many of all cases."""

LEVELS = f"Worse, better: p below {SURE:g}; perhaps: below {SEEN:g}, measure again."
"""What readers are told of the levels, beside verdicts."""

Z_SEEN = NormalDist().inv_cdf(1 - SEEN / 2)
Z_POWER = NormalDist().inv_cdf(POWER)
REACH = Z_SEEN + Z_POWER
"""Standard errors that a difference must measure to be detectable: 2.80."""


def called(p: float, change: float) -> Change:
    """Return the verdict on a ``change`` of a score (after less before) that has probability ``p``
    without any."""
    if p >= SEEN:
        return "no-difference-seen"
    if change < 0:
        return "worse" if p < SURE else "perhaps-worse"
    return "better" if p < SURE else "perhaps-better"


def words(change: Change) -> str:
    """Return the verdict as readers see it: ``perhaps worse``."""
    return change.replace("-", " ")


def reason(change: Change, p: float, detectable: float | None) -> str:
    """Return what stands behind a verdict: how often chance alone gives as much, or what would have
    been seen (``detectable``, a share; 1: nothing)."""
    if change == "not-enough-data":
        return "fewer than 5 right or 5 wrong answers are to be expected on a side"
    if change != "no-difference-seen":
        return f"chance alone gives as much in {_cases(p)} of cases"
    if detectable is None or detectable >= 1:
        return "nor would any have been, with so few questions"
    return f"{100 * detectable:.1f} pp would have been, in 80 % of cases"


def shown(p: float) -> str:
    """Return ``= 0.016``, or ``< 0.001``."""
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def _cases(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 0.001 else "less than 0.1 %"
