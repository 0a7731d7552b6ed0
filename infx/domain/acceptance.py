"""Acceptance laws of speculative decoding: how many tokens one verify step emits.

A step with K drafts emits between 1 and K+1 tokens: the accepted prefix of the drafts and one token
of the target itself. The acceptance length AL is the mean of that count, so 1 <= AL <= K+1.

A *synthetic* law replaces only the comparison of draft and target: the draft still runs, the target
still verifies K+1 rows, the sampler still samples. Draws are counter-based: they depend on (seed,
request, tokens emitted so far) alone, never on batching, rank or restart.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "LAWS",
    "REQUEST_LAWS",
    "Acceptance",
    "Law",
    "distribution",
    "draw",
    "moments",
    "uniform",
]

Law = Literal["min-variance", "geometric", "from-curve", "batch-min-variance"]
REQUEST_LAWS: tuple[Law, ...] = ("min-variance", "geometric", "from-curve")
"""The laws by which each request draws for itself in a step."""

LAWS: tuple[Law, ...] = (*REQUEST_LAWS, "batch-min-variance")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What a server is told about acceptance.

    ``real`` compares draft and target; ``synthetic`` follows ``law`` at mean ``length`` (tokens a
    step); under from-curve, ``curve[i]`` is the probability that draft i+1 is accepted, and they
    sum to length - 1. ``golden``, ``thinking`` and ``k`` say which measured curve the length was
    read from.
    """

    mode: Literal["real", "synthetic"] = "real"
    length: float | None = None
    law: Law = "min-variance"
    golden: str = ""
    thinking: str = ""
    k: int = 0
    curve: tuple[float, ...] = ()


def distribution(law: Law, length: float, k: int, curve: Sequence[float] = ()) -> list[float]:
    """Return P(step emits n tokens) for n = 1 … K+1, as K+1 probabilities that sum to 1.

    min-variance: all mass on the two integers around ``length``. batch-min-variance: the same, but
    one draw serves every request of a step (SGLang's match-expected). geometric: every draft is
    accepted with the same conditional probability, found by bisection so that the mean is
    ``length``.
    from-curve: ``curve[i]`` is the unconditional probability that draft i+1 is accepted.
    Raises ValueError when ``length`` is outside [1, K+1] or the curve is not non-increasing in
    [0, 1] with K entries.
    """
    if law == "from-curve":
        return _from_survival(_checked_curve(curve, k))
    if not 1 <= length <= k + 1:
        raise ValueError(f"acceptance length {length} is outside [1, {k + 1}] for K={k}")
    if law in ("min-variance", "batch-min-variance"):
        whole = math.floor(length - 1)
        rest = length - 1 - whole
        return _from_survival([1.0] * whole + [rest] * (whole < k) + [0.0] * (k - whole - 1))
    return _from_survival(_geometric_survival(length, k))


def moments(probabilities: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance (tokens, tokens²) of a step with these probabilities."""
    mean = sum(n * p for n, p in enumerate(probabilities, 1))
    return mean, sum((n - mean) ** 2 * p for n, p in enumerate(probabilities, 1))


def draw(probabilities: Sequence[float], seed: int, request: int, emitted: int) -> int:
    """Return the tokens that the step after ``emitted`` tokens of ``request`` emits (1 … K+1)."""
    point = uniform(seed, request, emitted)
    for count, probability in enumerate(probabilities, 1):
        point -= probability
        if point < 0:
            return count
    return max(n for n, p in enumerate(probabilities, 1) if p > 0)


def uniform(seed: int, request: int, emitted: int) -> float:
    """Return a number in [0, 1) that depends on its arguments alone (BLAKE2b in counter mode)."""
    counter = f"{seed}/{request}/{emitted}".encode()
    word = int.from_bytes(hashlib.blake2b(counter, digest_size=8).digest(), "big")
    return (word >> 11) / (1 << 53)


def _checked_curve(curve: Sequence[float], k: int) -> list[float]:
    ordered = all(a >= b for a, b in itertools.pairwise(curve))
    if len(curve) != k or not ordered or not all(0 <= p <= 1 for p in curve):
        raise ValueError(f"a curve for K={k} is {k} non-increasing probabilities, not {curve}")
    return list(curve)


def _from_survival(survival: Sequence[float]) -> list[float]:
    ladder = [1.0, *survival, 0.0]
    return [a - b for a, b in itertools.pairwise(ladder)]


def _geometric_survival(length: float, k: int) -> list[float]:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = 1 + sum(middle**i for i in range(1, k + 1))
        low, high = (middle, high) if mean < length else (low, middle)
    return [high**i for i in range(1, k + 1)]
