"""The gates about what a token costs: dollars at a stated price, joules as measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from infx.analysis.cost import told
from infx.domain.codes import CODES
from infx.domain.hardware import Price
from infx.domain.record import Energy
from infx.report.figures import count, extent
from infx.report.model import Gate, Level, PointRow

__all__ = ["cost", "energy"]

_USD, _JOULES = "usd_per_m_tokens", "j_per_token"


def cost(valid: Sequence[PointRow], prices: Mapping[str, Price]) -> list[Gate]:
    """Return what the valid points cost where their hardware has a price, with its source."""
    figures = _values(valid, _USD)
    if not figures:
        return []
    sentence = f"{extent(figures)} $ per million tokens, at stated prices: nothing was billed."
    used = {row.record.point.arm.hardware: None for row in valid if _USD in row.figures}
    items = tuple(f"{name}: {told(prices[name])}" for name in used if name in prices)
    return [Gate(name="Cost", level="good", sentence=sentence, items=items)]


def energy(valid: Sequence[PointRow]) -> list[Gate]:
    """Return the energy a token of the valid points, and why some have none."""
    logs = [record.energy for row in valid for record in row.repeats if record.energy]
    if not logs:
        return []
    figures = _values(valid, _JOULES)
    reasons = Counter(reason for log in logs for reason in log.reasons)
    lacking = sum(not log.valid for log in logs)
    sentence = f"{extent(figures)} J/token measured, " if figures else ""
    sentence += f"{len(logs) - lacking} of {count(len(logs), 'power log')} cover their window"
    level: Level = "note" if lacking else "good"
    items = (*_sources(logs), *(_reason(code, number) for code, number in reasons.most_common()))
    return [Gate(name="Energy", level=level, sentence=f"{sentence}.", items=items)]


def _values(rows: Iterable[PointRow], key: str) -> list[float]:
    return [row.figures[key].value for row in rows if key in row.figures]


def _sources(logs: Sequence[Energy]) -> tuple[str, ...]:
    told = ", ".join(dict.fromkeys(log.source for log in logs))
    return (f"power of every accelerator from {told}, trapezoids over the measured window",)


def _reason(code: str, number: int) -> str:
    meaning = f" {CODES[code].meaning}" if code in CODES else ""
    return f"{number} × {code}{meaning}"
