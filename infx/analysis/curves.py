"""Curves: which points stand on one line, and which of them are on its frontiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from infx.analysis.metrics import NORTH_STAR, Metric, Priced
from infx.analysis.pareto import frontier
from infx.analysis.repeats import mean_of
from infx.domain.partners import load_of
from infx.domain.point import Accuracy, Point
from infx.domain.record import PointRecord

__all__ = ["Line", "line_frontiers", "line_of", "lines_of", "priced"]

_LOAD = ("requests", "warmup-requests")
"""What follows the concurrency of a point, and so differs along a line."""

Figures = Mapping[str, float]
"""By the key of a metric; without those that the point does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What points of one curve share: other lengths (or sessions) answer other questions, and mono
    is a computation of its own, whose curve is looked at beside that without it. The number of
    requests does not: it follows the concurrency. ``workload`` is in words: ``64 in, 32 out``;
    ``rest`` holds everything else that is asked, and the model and hardware that answer."""

    entry: str
    workload: str
    mono: str = "off"
    rest: tuple[tuple[str, str], ...] = ()

    def apart(self, lines: Iterable[Line]) -> str:
        """Return what tells the line from those of its entry among ``lines``: ``mono on``,
        ``mono off, 64 in, 32 out``; empty when it is the only one."""
        others = [line for line in lines if line.entry == self.entry]
        parts = {"mono": f"mono {self.mono}", "workload": self.workload}
        told = [text for name, text in parts.items() if len({getattr(o, name) for o in others}) > 1]
        return ", ".join([*told, *self._rest_apart(others)])

    def _rest_apart(self, others: Sequence[Line]) -> list[str]:
        """Name the rest where the words for the workload are the same."""
        alike = [dict(line.rest) for line in others if line.workload == self.workload]
        return [
            f"{name} {text}" if text else f"no {name}"
            for name, text in self.rest
            if any(other.get(name) != text for other in alike)
        ]


def line_of(point: Point) -> Line:
    """Return the line of a throughput point."""
    workload, arm = point.workload, point.arm
    assert not isinstance(workload, Accuracy)
    rest = {
        "model": arm.model.name,
        "precision": arm.model.precision,
        "hardware": arm.hardware,
        **{name: value for name, value in load_of(workload).items() if name not in _LOAD},
    }
    return Line(
        entry=point.entry,
        workload=workload.words,
        mono=arm.axes.mono,
        rest=tuple((name, "" if value is None else str(value)) for name, value in rest.items()),
    )


def lines_of(points: Iterable[Point]) -> list[Line]:
    """Return the lines of the throughput points among ``points``, each once, in their order."""
    return list(dict.fromkeys(line_of(p) for p in points if p.mode == "throughput"))


def priced(record: PointRecord, usd_gpu_hour: Mapping[str, float] | None = None) -> Priced | None:
    """Return what metrics read of a record, None where it has no measurement; ``usd_gpu_hour`` is
    the price of an accelerator by hardware."""
    if record.measurement is None:
        return None
    price = (usd_gpu_hour or {}).get(record.point.arm.hardware)
    return Priced(measurement=record.measurement, energy=record.energy, usd_gpu_hour=price)


def line_frontiers(
    records: Sequence[PointRecord],
    pairs: Sequence[tuple[Metric, Metric]],
    usd_gpu_hour: Mapping[str, float] | None = None,
) -> Mapping[int, frozenset[tuple[str, str]]]:
    """Return for each index of a record the pairs (x key, y key) whose frontier its point is on,
    of its own line; records on none are left out.

    For each y the North Star's x decides: a pair with another x shows the intersection of its own
    frontier with that one. Records of one point are its repeats, and compete as their mean. Only
    throughput points that are ``ok`` compete, and only where they tell both figures.
    """
    on: dict[int, set[tuple[str, str]]] = {}
    metrics = {metric.key: metric for pair in pairs for metric in (NORTH_STAR, *pair)}
    for points in _lines(records).values():
        figures = [_figures([records[n] for n in ns], metrics, usd_gpu_hour) for ns in points]
        deciding = {y.key: _members(figures, NORTH_STAR, y) for _, y in pairs}
        for x, y in pairs:
            for position in _members(figures, x, y) & deciding[y.key]:
                for index in points[position]:
                    on.setdefault(index, set()).add((x.key, y.key))
    return {index: frozenset(keys) for index, keys in on.items()}


def _lines(records: Sequence[PointRecord]) -> dict[Line, list[list[int]]]:
    """Return by line the indices of the records of each of its points."""
    lines: dict[Line, dict[str, list[int]]] = {}
    for index, record in enumerate(records):
        if record.point.mode == "throughput" and record.measurement and record.status.state == "ok":
            points = lines.setdefault(line_of(record.point), {})
            points.setdefault(record.point.point_id, []).append(index)
    return {line: list(points.values()) for line, points in lines.items()}


def _figures(
    repeats: Sequence[PointRecord],
    metrics: Mapping[str, Metric],
    usd_gpu_hour: Mapping[str, float] | None,
) -> Figures:
    sides = [side for record in repeats if (side := priced(record, usd_gpu_hour))]
    values = {
        key: [value for side in sides if (value := metric.of(side)) is not None]
        for key, metric in metrics.items()
    }
    return {key: mean_of(told) for key, told in values.items() if told}


def _members(figures: Sequence[Figures], x: Metric, y: Metric) -> set[int]:
    told = [n for n, each in enumerate(figures) if x.key in each and y.key in each]
    places = [(figures[n][x.key], figures[n][y.key]) for n in told]
    return {told[n] for n in frontier(places, (x.direction, y.direction))}
