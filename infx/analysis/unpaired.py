"""Two scores of which nothing is known but right answers and questions.

Without knowing which questions were answered how, the noise of both sides stays in the difference:
the two-sample z test with the pooled standard error √(p(1-p)(1/n₁ + 1/n₂)), as in Fleiss,
"Statistical Methods for Rates and Proportions" (1981, chapter 2).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from infx.analysis.chance import REACH, Change, called, reason, shown, words
from infx.analysis.statistics import standard_error
from infx.domain.errors import UsageError

__all__ = ["Counted", "UnpairedVerdict", "apart", "counted"]

LEAST = 5
"""Right and wrong answers that a side must be expected to have for a normal law to describe it: the
usual rule (Fleiss, as above)."""

_COUNTED = re.compile(r"(\d{1,15}|\d{0,15}\.\d{1,30})/(\d{1,15})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A score: the share of right answers (0 … 1) and how many questions it is over."""

    score: float
    questions: int

    @property
    def stderr(self) -> float:
        """The binomial standard error, as lm-eval prints it."""
        return standard_error(self.score, self.questions)

    def __str__(self) -> str:
        right = round(self.score * self.questions)
        whole = math.isclose(right, self.score * self.questions, abs_tol=1e-9)
        return f"{right if whole else f'{self.score:.4g}'}/{self.questions}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpairedVerdict:
    """What two scores tell of a change. ``p`` is the two-sided probability of ``z`` standard errors
    or more without any; ``detectable`` the change of the score that would have been seen in 80 % of
    cases."""

    questions: tuple[int, int]
    before: float
    after: float
    stderrs: tuple[float, float]
    z: float
    p: float
    detectable: float | None
    change: Change

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        return (
            f"{self.before:.3f} → {self.after:.3f}, unpaired: z = {self.z:.1f}, p {shown(self.p)}: "
            f"{words(self.change)} ({reason(self.change, self.p, self.detectable)})"
        )


def counted(text: str) -> Counted | None:
    """Return the score that ``text`` says: ``1199/1319`` (right of all) or ``0.909/1319`` (a share
    and its questions); None for other text. Raises UsageError for one that cannot be."""
    found = _COUNTED.fullmatch(text)
    if not found:
        return None
    right, questions = found[1], int(found[2])
    score = float(right) if "." in right else int(right) / max(questions, 1)
    if questions and score <= 1:
        return Counted(score=score, questions=questions)
    hint = "write right answers of all questions, 1199/1319, or a share of them, 0.909/1319"
    raise UsageError("bad-option", f"{text} is no score", hint=hint)


def apart(before: Counted, after: Counted) -> UnpairedVerdict:
    """Return the verdict on ``after`` against ``before``, other questions or the same."""
    n = before.questions + after.questions
    pooled = (before.score * before.questions + after.score * after.questions) / n
    stderr = math.sqrt(pooled * (1 - pooled) * (1 / before.questions + 1 / after.questions))
    change = after.score - before.score
    z = abs(change) / stderr if stderr else 0.0
    p = math.erfc(z / math.sqrt(2))
    enough = min(pooled, 1 - pooled) * min(before.questions, after.questions) >= LEAST
    return UnpairedVerdict(
        questions=(before.questions, after.questions),
        before=before.score,
        after=after.score,
        stderrs=(before.stderr, after.stderr),
        z=z,
        p=p,
        detectable=min(REACH * stderr, 1.0) if enough else None,
        change=called(p, change) if enough else "not-enough-data",
    )
