"""Partners: points that are asked the same, of arms that differ in one axis alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from infx.domain.axes import kebab
from infx.domain.point import SERVER_AXES, Arm, Point, Workload

__all__ = ["load_of", "question_of", "rest_of"]

_WITH_K = ("acceptance", "method")
"""What of an arm's identity follows from K: arms that differ in it differ in these (the method with
the model that drafts) by necessity."""


def rest_of(arm: Arm, axis: str) -> dict[str, Any]:
    """Return the arm's identity less the server axis ``axis`` (snake) and what follows from it:
    arms that agree in the rest differ in the axis alone."""
    dropped = _WITH_K if axis == "k" else ()
    rest = {name: value for name, value in arm.identity().items() if name not in dropped}
    axes = {name: getattr(arm.axes, name) for name in SERVER_AXES if name != axis}
    return rest | {"axes": axes}


def question_of(point: Point) -> dict[str, object]:
    """Return what a point is asked, by the names of the matrix."""
    parts = {"mode": point.mode, "model": point.arm.model.name, "conc": point.conc}
    return {**parts, "queueing": point.queueing, **load_of(point.workload)}


def load_of(workload: Workload) -> dict[str, object]:
    """Return what a workload asks, by the names of the matrix: not what it is judged by, nor where
    sessions lie that are told by their content."""
    asked = {kebab(f.name): getattr(workload, f.name) for f in fields(workload)}
    told_by_content = ("trace",) if asked.get("content") and "trace" in asked else ()
    for name in ("bars", "error-share", "source", "longest", *told_by_content):
        asked.pop(name, None)
    return asked
