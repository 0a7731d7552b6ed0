"""What a reader may narrow a report to: the things in which its points differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infx.report.figures import image, plain
from infx.report.model import Filter, PointRow

__all__ = ["filters_of"]

_OF: dict[str, Callable[[PointRow], str]] = {
    "TP": lambda row: plain(row.record.point.arm.axes.tp),
    "mono": lambda row: row.record.point.arm.axes.mono,
    "KV dtype": lambda row: row.record.point.arm.axes.kv_cache_dtype,
    "image": lambda row: image(row.record.point.arm),
    "verdict": lambda row: "valid" if row.valid else "invalid",
    "entry": lambda row: row.series.entry,
}


def filters_of(rows: Sequence[PointRow]) -> tuple[Filter, ...]:
    """Return a filter for each thing that has two values or more among the rows."""
    found = []
    for name, of in _OF.items():
        values: dict[str, list[str]] = {}
        for row in rows:
            values.setdefault(of(row), []).append(row.anchor)
        if len(values) > 1:
            found.append(Filter(name=name, values={v: tuple(a) for v, a in values.items()}))
    return tuple(found)
