"""Numbers, times and axes as people read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise, takewhile

from infx.domain.point import Arm
from infx.domain.record import Provenance

__all__ = [
    "blank",
    "clock",
    "count",
    "duration",
    "extent",
    "figure",
    "image",
    "moved_between",
    "percent",
    "plain",
    "revision",
    "signed",
    "spread",
    "values",
    "with_spread",
]

blank = "–"


def figure(value: float | None) -> str:
    """Return three significant digits, never in exponent form: ``0.0421``, ``1,234``."""
    if value is None:
        return blank
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def percent(share: float | None) -> str:
    """Return a share of 0 … 1 as a percentage."""
    return blank if share is None else f"{figure(share * 100)} %"


def signed(share: float) -> str:
    """Return a change of a figure as a percentage with its sign, ``+3.2 %``; from tenfold on as a
    factor, ``×36.2``: nobody reads +3519.0 %. Nothing for NaN: no change is known."""
    if math.isnan(share):
        return ""
    return f"×{figure(1 + share)}" if share >= 9 else f"{share * 100:+.1f} %"


def spread(low: float | None, high: float | None) -> str:
    """Return ``1.20 – 1.31``, nothing where there is no interval."""
    return "" if low is None or high is None else f"{figure(low)} – {figure(high)}"


def with_spread(value: float, low: float | None, high: float | None) -> str:
    """Return ``1.25 (1.20 – 1.31)``, the figure alone where there is no interval."""
    interval = spread(low, high)
    return f"{figure(value)} ({interval})" if interval else figure(value)


def extent(values: Sequence[float], say: Callable[[float], str] = figure) -> str:
    """Return ``98.1 to 100``, or the one text that the least and the most share."""
    return " to ".join(dict.fromkeys(say(value) for value in (min(values), max(values))))


def moved_between(low: float | None, high: float | None) -> str:
    """Return the interval of a ratio as changes, ``-1.2 % … +3.0 %``; nothing where it has none."""
    return "" if low is None or high is None else f"{signed(low - 1)} … {signed(high - 1)}"


def count(number: int, noun: str) -> str:
    """Return ``1 point``, ``3 points``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """Return ``42 s`` or ``5 min 03 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


def clock(epoch_s: float) -> str:
    """Return a UTC time to the minute, or a dash when it is unknown."""
    if not epoch_s:
        return blank
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def image(arm: Arm) -> str:
    """Return the image's name, with eight digits of its digest where it has one."""
    digest = arm.image_digest.removeprefix("sha256:")[:8]
    return f"{arm.image} ({digest})" if digest else arm.image


def revision(made: Provenance) -> str:
    """Return the revision that made a record, and whether its files had been changed."""
    return f"{made.git_revision} (dirty)" if made.git_dirty else made.git_revision


def plain(value: object) -> str:
    """Return an axis value: ``on``, ``8``, ``1, 2, 4``; regular: ``1–8``, ``4–32 step 4``."""
    if value is None:
        return blank
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return _runs(list(value)) or blank
    return str(value)


def values(axes: Mapping[str, object]) -> str:
    """Return ``conc=4 max-num-seqs=8``."""
    return " ".join(f"{name}={plain(value)}" for name, value in axes.items())


def _runs(items: list[object]) -> str:
    """Return the items with each regular stretch of integers as its ends and its step."""
    parts, rest = [], items
    while rest:
        length = _regular(rest)
        parts.append(_stretch(rest[:length]))
        rest = rest[length:]
    return ", ".join(parts)


def _regular(items: list[object]) -> int:
    """Return how many items from the first on to write as one: 1 when they are not regular.

    Three consecutive integers are; with another step it takes four, or little is saved.
    """
    whole = list(takewhile(lambda item: type(item) is int, items))
    steps = [int(b) - int(a) for a, b in pairwise(whole)]  # type: ignore[call-overload]
    if not steps or steps[0] < 1:
        return 1
    length = 1 + sum(1 for _ in takewhile(lambda step: step == steps[0], steps))
    return length if length >= (3 if steps[0] == 1 else 4) else 1


def _stretch(items: list[object]) -> str:
    if len(items) == 1:
        return str(items[0])
    step = int(items[1]) - int(items[0])  # type: ignore[call-overload]
    return f"{items[0]}–{items[-1]}" + (f" step {step}" if step > 1 else "")
