"""The gates about the curves: are they covered, and what does noise leave of them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infx.analysis.noise import SURE, Coverage
from infx.report.figures import count, percent
from infx.report.model import Gate, Level, PointRow, Series

__all__ = ["coverage", "covered", "noise"]


def coverage(series: Sequence[Series], found: Mapping[int, Coverage]) -> Gate:
    """Return how many of its measured points each curve has on its frontier."""
    lines = [(one, found[one.number]) for one in series if one.number in found]
    thin = [one for one, told in lines if _sure(told) < told.advised]
    sentence = f"{count(len(lines), 'curve')}, {len(thin)} with fewer points on the frontier than "
    sentence += f"the {max(told.advised for _, told in lines)} advised."
    items = tuple(f"{one.label}: {covered(told)}" for one, told in lines)
    level: Level = "note" if thin else "good"
    return Gate(name="Coverage", level=level, sentence=sentence, items=items)


def covered(found: Coverage) -> str:
    """Return ``9 of 19 measured on the frontier, 2 invalid, at least 7 under noise``."""
    told = [f"{found.on} of {found.measured} measured on the frontier"]
    told += [f"{found.invalid} invalid"] if found.invalid else []
    told += [f"at least {found.least} under noise"] if found.least is not None else []
    return ", ".join(told)


def noise(valid: Sequence[PointRow]) -> Gate:
    """Return what repeats say of the frontier; without any, that nothing can be said."""
    again = [row for row in valid if row.runs > 1]
    chances = [(row, row.chance) for row in valid if row.chance is not None]
    if not chances:
        seen = f"{len(again)} of {len(valid)} measured again" if again else "One run of each point"
        sentence = f"{seen}: how much of the frontier is chance cannot be told."
        return Gate(name="Noise", level="note", sentence=sentence)
    unsure = [(row, chance) for row, chance in chances if 1 - SURE < chance < SURE]
    sentence = f"{len(again)} of {count(len(valid), 'valid point')} measured more than once; noise "
    sentence += f"may move {count(len(unsure), 'point')}" if unsure else "moves none"
    sentence += " on or off the frontier"
    untold = len(valid) - len(chances)
    sentence += f"; of {count(untold, 'point')} on other lines nobody can tell." if untold else "."
    items = tuple(
        f"{row.record.point.label}: {percent(chance)} on the frontier" for row, chance in unsure
    )
    level: Level = "note" if unsure or len(again) < len(valid) else "good"
    return Gate(name="Noise", level=level, sentence=sentence, items=items)


def _sure(found: Coverage) -> int:
    return found.on if found.least is None else found.least
