"""Axes: from values to places, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Scale", "linear_scale", "log_scale", "scale_for", "tick_text"]

LOG_RATIO = 8
"""Above this ratio of largest to smallest, a linear axis squeezes one series into a corner."""

NEAR_ZERO = 0.3
"""Share of the largest value under which an axis may as well begin at 0."""

FEW_TICKS = 3
"""A logarithmic axis within a decade may hold fewer of 1, 2, 5: then it takes a linear one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis over ``low`` … ``high`` drawn from ``start`` to ``end`` (any unit of length)."""

    low: float
    high: float
    log: bool
    start: float
    end: float

    def pixel(self, value: float) -> float:
        """Return where ``value`` is drawn, to a tenth."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return round(self.start + (at - low) / (high - low) * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Return about five round values inside the axis."""
        found = _log_ticks(self.low, self.high) if self.log else []
        return found if len(found) >= FEW_TICKS else _ticks(self.low, self.high)


def scale_for(values: Sequence[float], start: float, end: float) -> Scale:
    """Return an axis with room around ``values``: logarithmic when they span a wide range.

    Without values: 0 … 1.
    """
    wide = bool(values) and min(values) > 0 and max(values) / min(values) > LOG_RATIO
    return (log_scale if wide else linear_scale)(values, start, end)


def linear_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a linear axis: from 0 where the least value is small beside the largest."""
    if not values:
        return Scale(low=0, high=1, log=False, start=start, end=end)
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.2 or 1.0
    floor = 0.0 if low >= 0 and low - room < high * NEAR_ZERO else low - room
    return Scale(low=floor, high=high + room, log=False, start=start, end=end)


def log_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a logarithmic axis; all ``values`` are above 0, and there is one."""
    low, high = min(values), max(values)
    room = max((high / low) ** 0.08, 1.05)
    return Scale(low=low / room, high=high * room, log=True, start=start, end=end)


def tick_text(value: float) -> str:
    """Return a tick as it is written: ``0.05``, ``250``, ``1,000``, ``20,000``."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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
