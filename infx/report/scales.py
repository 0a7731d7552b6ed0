"""Axes: from values to pixels, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Scale", "scale_for"]

LOG_RATIO = 8
"""Above this ratio of largest to smallest, a linear axis squeezes one series into a corner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis over ``low`` … ``high`` drawn from ``start`` to ``end`` (pixels)."""

    low: float
    high: float
    log: bool
    start: float
    end: float

    def pixel(self, value: float) -> float:
        """Return where ``value`` is drawn, to a tenth of a pixel."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Return about five round values inside the axis."""
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high)


def scale_for(values: Sequence[float], start: float, end: float) -> Scale:
    """Return an axis with room around ``values``: logarithmic when they span a wide range.

    A linear axis starts at 0 unless all values are close to each other. Without values: 0 … 1.
    """
    if not values:
        return Scale(low=0, high=1, log=False, start=start, end=end)
    low, high = min(values), max(values)
    if low > 0 and high / low > LOG_RATIO:
        return Scale(low=low / 1.35, high=high * 1.5, log=True, start=start, end=end)
    room = (high - low) * 0.15 or high * 0.2 or 1.0
    floor = 0.0 if low - room < high / 2 else low - room
    return Scale(low=floor, high=high + room, log=False, start=start, end=end)


def _ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step)
    return [n * step for n in range(first, math.floor(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    inside = [tick for tick in every if low <= tick <= high]
    if len(inside) <= 7:
        return inside
    return [tick for tick in inside if math.log10(tick).is_integer()]
