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
from typing import Literal

__all__ = ["PairedVerdict", "pair"]

Change = Literal["worse", "better", "no-difference-seen"]

LEVEL = 0.01
"""A change is called one when chance alone gives as much in fewer cases than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What changed from one run to the other.

    ``lost`` questions were right before and are wrong after, ``won`` the other way round; ``p`` is
    the two-sided exact probability of such a split without any change; ``detectable`` the smallest
    share of all questions that would have been called a change, were it only lost ones.
    """

    questions: int
    before: float
    after: float
    lost: int
    won: int
    p: float
    detectable: float
    change: Change

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        return (
            f"{self.before:.3f} → {self.after:.3f} over the same {self.questions} questions:"
            f" {self.lost} lost, {self.won} won, p {_shown(self.p)}: "
            + {
                "worse": "worse",
                "better": "better",
                "no-difference-seen": "no difference seen (a loss of "
                f"{self.detectable:.1%} would have been)",
            }[self.change]
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
    p = _two_sided(lost, won)
    return PairedVerdict(
        questions=n,
        before=sum(before.values()) / n,
        after=sum(after.values()) / n,
        lost=lost,
        won=won,
        p=p,
        detectable=min(_fewest_lost() / n, 1.0),
        change="no-difference-seen" if p >= LEVEL else "worse" if lost > won else "better",
    )


def _two_sided(lost: int, won: int) -> float:
    n, fewer = lost + won, min(lost, won)
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    return min(1.0, 2 * (tail / (1 << n)))


def _fewest_lost() -> int:
    """Return the questions that must be lost, none won, to be called a change."""
    return next(n for n in range(1, 64) if _two_sided(n, 0) < LEVEL)


def _shown(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"
