"""The rule: 1 %, or what both intervals allow."""

from __future__ import annotations

import pytest

from infx.golden.estimate import Estimate
from infx.golden.judging import judge


@pytest.mark.parametrize(
    ("golden", "interval", "now", "half_width", "holds"),
    [
        (2.0, 0.0, 2.0199, 0.0, True),
        (2.0, 0.0, 2.0201, 0.0, False),
        (2.0, None, 1.979, None, False),
        (2.0, 0.3, 2.49, 0.4, True),
        (2.0, 0.3, 2.51, 0.4, False),
        (2.0, None, 2.39, 0.4, True),
    ],
)
def test_what_holds(
    golden: float, interval: float | None, now: float, half_width: float | None, holds: bool
) -> None:
    found = judge("on", 3, golden, interval, Estimate(now, half_width, 900, 9))
    assert found.holds is holds
    assert (found.thinking, found.k, found.golden) == ("on", 3, golden)
