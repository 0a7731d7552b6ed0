"""What came and went since a baseline: whole arms, and points of arms that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from infx.domain.axes import AXES, kebab
from infx.domain.point import SERVER_AXES, Point
from infx.report.figures import count, values
from infx.report.model import Baseline

__all__ = ["moves"]

Arm = Sequence[Point]
"""The points of one server configuration along its concurrencies."""


def moves(since: Baseline, now: Iterable[Point]) -> Iterator[str]:
    """Yield ``1 arm added (2 points): a tp=2 (conc 1, 4)``, ``1 point dropped: a tp=1 (conc 8)``
    and the like of what ``since`` says; ``now`` are the points of the run.

    Arms are told by the axes that vary in their entry. An evaluation has its label.
    """
    sides = {"now": _arms(now), "before": _arms(row.record.point for row in since.rows)}
    varied = _varied([arm for arms in sides.values() for arm in arms])
    for what, labels in since.moved.items():
        arms = sides["before" if what == "dropped" else "now"]
        moved = [part for arm in arms if (part := [p for p in arm if p.label in labels])]
        whole = [arm for arm in arms if arm in moved and what != "valid no more"]
        some = [part for part in moved if part not in whole]
        if whole:
            points = count(sum(map(len, whole)), "point")
            yield f"{count(len(whole), 'arm')} {what} ({points}): {_told(whole, varied)}"
        told = {point.label for part in moved for point in part}
        others = [label for label in labels if label not in told]
        if number := sum(map(len, some)) + len(others):
            named = ", ".join(filter(None, (_told(some, varied), *others)))
            yield f"{count(number, 'point')} {what}: {named}"


def _arms(points: Iterable[Point]) -> list[Arm]:
    arms: dict[tuple[str, str], dict[str, Point]] = {}
    for point in points:
        if point.mode == "throughput":
            arms.setdefault((point.entry, point.curve_id), {})[point.point_id] = point
    return [list(points.values()) for points in arms.values()]


def _varied(arms: Iterable[Arm]) -> dict[str, list[str]]:
    """Return the axes by entry that tell its arms apart; none follows the concurrency."""
    seen: dict[str, dict[str, set[object]]] = {}
    for point in (point for arm in arms for point in arm):
        axes = seen.setdefault(point.entry, {})
        for name in SERVER_AXES:
            if name not in point.expressions:
                axes.setdefault(name, set()).add(getattr(point.arm.axes, name))
    return {
        entry: [name for name in AXES if len(axes.get(name, ())) > 1]
        for entry, axes in seen.items()
    }


def _told(arms: Iterable[Arm], varied: dict[str, list[str]]) -> str:
    return "; ".join(_arm(arm, varied[arm[0].entry]) for arm in arms)


def _arm(arm: Arm, varied: Iterable[str]) -> str:
    axes = {kebab(name): getattr(arm[0].arm.axes, name) for name in varied}
    name = " ".join(filter(None, (arm[0].entry, values(axes))))
    return f"{name} (conc {', '.join(str(point.conc) for point in arm)})"
