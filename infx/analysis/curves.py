"""Curves: which points stand on one line, and which of them are on its frontier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx.analysis.pareto import View, view_frontier
from infx.domain.point import Accuracy, Point
from infx.domain.record import PointRecord

__all__ = ["Line", "line_frontiers", "line_of", "lines_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What points of one curve share: other lengths (or sessions) answer other questions, and mono
    is a computation of its own, whose curve is looked at beside that without it. The number of
    requests does not: it follows the concurrency. ``workload`` is in words: ``64 in, 32 out``."""

    entry: str
    workload: str
    mono: str = "off"

    def apart(self, lines: Iterable[Line]) -> str:
        """Return what tells the line from those of its entry among ``lines``: ``mono on``,
        ``mono off, 64 in, 32 out``; empty when it is the only one."""
        others = [line for line in lines if line.entry == self.entry]
        parts = {"mono": f"mono {self.mono}", "workload": self.workload}
        told = [text for name, text in parts.items() if len({getattr(o, name) for o in others}) > 1]
        return ", ".join(told)


def line_of(point: Point) -> Line:
    """Return the line of a throughput point."""
    workload = point.workload
    assert not isinstance(workload, Accuracy)
    return Line(entry=point.entry, workload=workload.words, mono=point.arm.axes.mono)


def lines_of(points: Iterable[Point]) -> list[Line]:
    """Return the lines of the throughput points among ``points``, each once, in their order."""
    return list(dict.fromkeys(line_of(p) for p in points if p.mode == "throughput"))


def line_frontiers(
    records: Sequence[PointRecord], views: Sequence[View]
) -> Mapping[int, frozenset[str]]:
    """Return, for each index of a record on a frontier of its own line, the keys of those views.

    Only throughput points that are ``ok`` compete.
    """
    on: dict[int, set[str]] = {}
    for members in _members(records).values():
        measured = [m for index in members if (m := records[index].measurement)]
        for view in views:
            for position in view_frontier(measured, view):
                on.setdefault(members[position], set()).add(view.key)
    return {index: frozenset(keys) for index, keys in on.items()}


def _members(records: Sequence[PointRecord]) -> dict[Line, list[int]]:
    lines: dict[Line, list[int]] = {}
    for index, record in enumerate(records):
        if record.point.mode == "throughput" and record.measurement and record.status.state == "ok":
            lines.setdefault(line_of(record.point), []).append(index)
    return lines
