"""An acceptance length with its interval, from counts of batches of prompts.

The length is a ratio of sums, AL = 1 + (accepted drafts) / (verify steps): a long answer has more
steps and counts for more. Steps of one answer resemble each other, so the sampling unit is the
batch of prompts between two readings of the counters, not the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["CONFIDENCE", "Batch", "Estimate", "estimate", "t_quantile"]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Batch:
    """What the counters grew by over one batch of prompts."""

    accepted: float
    steps: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """``length`` (tokens a step) ± ``half_width`` at 95 % (None: one batch tells no spread)."""

    length: float
    half_width: float | None
    steps: int
    batches: int


def estimate(batches: Sequence[Batch]) -> Estimate:
    """Return the acceptance length of ``batches``. Raises ValueError when they hold no step.

    Ratio estimator R = ΣA/ΣS with variance m/(m-1) · Σ(A_b - R·S_b)² / (ΣS)² over m batches
    (Cochran, Sampling Techniques, 3rd ed. 1977, §6.3-6.4, without the finite-population factor),
    and Student's t with m-1 degrees of freedom.
    """
    steps = sum(batch.steps for batch in batches)
    if not steps:
        raise ValueError("no verify step in these batches")
    ratio = sum(batch.accepted for batch in batches) / steps
    m = len(batches)
    if m < 2:
        return Estimate(1 + ratio, None, steps, m)
    squares = sum((batch.accepted - ratio * batch.steps) ** 2 for batch in batches)
    error = math.sqrt(m / (m - 1) * squares) / steps
    return Estimate(1 + ratio, t_quantile(m - 1) * error, steps, m)


@cache
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return t with P(|T| <= t) = ``confidence`` for Student's T of ``freedom`` >= 1 degrees."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return P(|T| <= t): Abramowitz and Stegun, Handbook, 1964, 26.7.3 (odd) and 26.7.4 (even)."""
    angle = math.atan(t / math.sqrt(freedom))
    odd, cosine = freedom % 2, math.cos(angle)
    term = total = cosine if odd else 1.0
    for i in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (i - 1) / i
        total += term
    share = math.sin(angle) * (total if freedom > 1 else 0.0)
    return 2 / math.pi * (angle + share) if odd else share
