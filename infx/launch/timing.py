"""How long the rest takes: the plan's estimates, corrected by what was measured so far."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from infx.domain.plan import Job
from infx.domain.point import Point
from infx.plan.jobs import SERVER_START_S, point_s

__all__ = ["Timing"]


class Timing:
    """Learns, for each engine and phase (start, throughput, evaluation), how far the plan's
    estimates are off, as the median of measured over estimated.

    Engines learn nothing from each other: in the quickstart llama.cpp starts in 2 s and takes 5.7 s
    a question, infx's engine 8 s and 1.1 s.
    """

    def __init__(self) -> None:
        self._ratios: dict[tuple[str, str], list[float]] = defaultdict(list)

    def started(self, job: Job, seconds: float) -> None:
        """Note how long a server took from launch to ready."""
        self._note(job.arm.framework, "start", seconds / SERVER_START_S)

    def measured(self, point: Point, seconds: float) -> None:
        """Note how long a point took."""
        self._note(point.arm.framework, point.mode, seconds / point_s(point))

    def start_s(self, job: Job) -> float:
        """Return the expected seconds from launch to ready."""
        return SERVER_START_S * self._ratio(job.arm.framework, "start")

    def point_s(self, point: Point) -> float:
        """Return the expected seconds of a point on a server that is ready."""
        return point_s(point) * self._ratio(point.arm.framework, point.mode)

    def _note(self, framework: str, phase: str, ratio: float) -> None:
        self._ratios[framework, phase].append(ratio)

    def _ratio(self, framework: str, phase: str) -> float:
        return median(self._ratios.get((framework, phase), [1.0]))
