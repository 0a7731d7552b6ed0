"""Two runs over the same questions, judged question by question.

A question that both got right or both got wrong says nothing about which run is better, and takes
its noise with it: of the *discordant* ones, as many should be lost as won where nothing changed.
That is McNemar's test in its exact form: under no change the questions lost are binomial(n, 1/2) of
the n discordant ones (McNemar, "Note on the sampling error of the difference between correlated
proportions or percentages", Psychometrika 1947).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from infx.analysis.chance import Z_POWER, Z_SEEN, Change, called, reason, shown, words
from infx.analysis.statistics import standard_error

__all__ = ["PairedVerdict", "detectable", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What changed from one run to the other.

    ``lost`` questions were right before and are wrong after, ``won`` the other way round, and
    ``discordance`` is the share of both; ``p`` is the two-sided exact probability of such a split
    without any change; ``detectable`` the change of the score that would have been seen.
    """

    questions: int
    before: float
    after: float
    stderrs: tuple[float, float]
    lost: int
    won: int
    discordance: float
    p: float
    detectable: float
    change: Change

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        return (
            f"{self.before:.3f} → {self.after:.3f} over the same {self.questions} questions:"
            f" {self.lost} lost, {self.won} won, p {shown(self.p)}: "
            f"{words(self.change)} ({reason(self.change, self.p, self.detectable)})"
        )


def pair(before: Mapping[str, bool], after: Mapping[str, bool]) -> PairedVerdict:
    """Return the verdict on ``after`` against ``before``, both {question: answered rightly}.

    Raises ValueError when they are not the same questions, or none.
    """
    if not before or before.keys() != after.keys():
        odd = sorted(before.keys() ^ after.keys())
        told = f"{len(odd)} stand in one only, as {odd[0]!r}" if odd else "there are none"
        raise ValueError(f"a paired comparison needs the same questions on both sides: {told}")
    n = len(before)
    lost = sum(before[key] and not after[key] for key in before)
    won = sum(after[key] and not before[key] for key in before)
    scores = sum(before.values()) / n, sum(after.values()) / n
    p = _two_sided(lost, won)
    return PairedVerdict(
        questions=n,
        before=scores[0],
        after=scores[1],
        stderrs=(standard_error(scores[0], n), standard_error(scores[1], n)),
        lost=lost,
        won=won,
        discordance=(lost + won) / n,
        p=p,
        detectable=detectable(n, (lost + won) / n),
        change=called(p, won - lost),
    )


def detectable(questions: int, discordance: float) -> float:
    """Return the change of a score (0 … 1) that is seen in 80 % of cases when a ``discordance``
    (share) of the ``questions`` is answered differently; 1 where none would be.

    The least δ with δ√n ≥ z₀.₉₇₅√ψ + z₀.₈√(ψ - δ²), after R. J. Connor, "Sample size for testing
    differences in proportions for the paired-sample design", Biometrics 1987; ψ is the
    discordance, and at least δ, which no change is without.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _is_seen(middle, questions, discordance) else (middle, high)
    return high


def _is_seen(change: float, questions: int, discordance: float) -> bool:
    share = max(discordance, change)
    needed = Z_SEEN * math.sqrt(share) + Z_POWER * math.sqrt(share - change * change)
    return change * math.sqrt(questions) >= needed


def _two_sided(lost: int, won: int) -> float:
    n, fewer = lost + won, min(lost, won)
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    return min(1.0, 2 * (tail / (1 << n)))
