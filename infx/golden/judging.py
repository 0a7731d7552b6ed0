"""Does an acceptance length of a golden file still hold?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from infx.golden.estimate import Estimate

__all__ = ["RELATIVE", "Verdict", "judge"]

RELATIVE = 0.01
"""The validity of a throughput point allows as much between the asked and the realised length."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``golden`` against ``now``; ``tolerance`` is how far apart they may be (tokens a step).

    ``interval`` is the golden value's half width; None when its file tells none.
    """

    thinking: str
    k: int
    golden: float
    interval: float | None
    now: Estimate
    tolerance: float
    holds: bool


def judge(thinking: str, k: int, golden: float, interval: float | None, now: Estimate) -> Verdict:
    """Return whether ``golden`` ± ``interval`` agrees with the length measured now.

    They may differ by 1 % or by the 95 % half width of their difference, whichever is larger: the
    root of the sum of both squares, as for independent samples. On the same prompts the errors are
    alike, and the rule is lenient by that much.
    """
    known = [width for width in (interval, now.half_width) if width is not None]
    tolerance = max(RELATIVE * golden, math.hypot(*known))
    holds = abs(now.length - golden) <= tolerance
    return Verdict(thinking, k, golden, interval, now, tolerance, holds)
