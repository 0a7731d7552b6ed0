"""The canary: the cheapest point of each scenario being changed goes first, by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from infx.ci.diff import scenario, scenario_type
from infx.domain.identity import content_id
from infx.domain.plan import Job, Plan
from infx.domain.point import Point
from infx.plan.jobs import estimate_cost, point_s

__all__ = ["Canary", "canaries", "led_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A point that is measured before the others of its entry; ``job_id`` is its job in the plan
    that `led_by` returns."""

    entry: str
    scenario: str
    label: str
    point_id: str
    job_id: str = ""
    cost_s: float


def canaries(points: Iterable[Point], changed: Collection[tuple[str, str]]) -> tuple[Point, ...]:
    """Return for each entry the cheapest point of each scenario type: of the scenarios in
    ``changed`` (pairs of an entry and a `scenario`), or of all where none of them is measured.

    An evaluation is one only where nothing else is measured. Among equals the lowest concurrency,
    then the plan's order.
    """
    entries: dict[str, list[Point]] = {}
    for point in points:
        entries.setdefault(point.entry, []).append(point)
    return tuple(one for some in entries.values() for one in _of_entry(some, changed))


def _of_entry(points: list[Point], changed: Collection[tuple[str, str]]) -> list[Point]:
    timed = [point for point in points if point.mode == "throughput"] or points
    touched = [point for point in timed if (point.entry, scenario(point)) in changed]
    types: dict[str, list[Point]] = {}
    for point in touched or timed:
        types.setdefault(scenario_type(point), []).append(point)
    return [min(some, key=_cost) for some in types.values()]


def _cost(point: Point) -> tuple[float, int, int]:
    """A point's accelerators for its time; a CPU machine counts as one."""
    return point_s(point) * point.gpus, point.gpus, point.conc


def led_by(plan: Plan, points: Iterable[Point]) -> tuple[Plan, tuple[Canary, ...]]:
    """Return the plan with a job of its own for each of ``points``, before all others."""
    first = {point.point_id for point in points}
    parts = [part for job in plan.jobs for part in _split(job, first)]
    led = [job for job in parts if job.points[0].point_id in first]
    rest = [job for job in parts if job.points[0].point_id not in first]
    jobs, ids = (*led, *rest), tuple(job.job_id for job in led)
    led_plan = replace(plan, jobs=jobs, cost=estimate_cost(jobs), canaries=ids)
    return led_plan, tuple(map(_canary, led))


def _split(job: Job, first: Collection[str]) -> list[Job]:
    alone = [(point,) for point in job.points if point.point_id in first]
    rest = tuple(point for point in job.points if point.point_id not in first)
    return [_part(job, points) for points in (*alone, *([rest] if rest else []))]


def _part(job: Job, points: tuple[Point, ...]) -> Job:
    """Return the job for some of its points; the whole of it keeps its identity."""
    if points == job.points:
        return job
    key = content_id([job.job_id, [point.point_id for point in points]])
    return replace(job, job_id=key, name=points[0].name, points=points)


def _canary(job: Job) -> Canary:
    [point] = job.points
    return Canary(
        entry=point.entry,
        scenario=point.workload.kind,
        label=point.label,
        point_id=point.point_id,
        job_id=job.job_id,
        cost_s=point_s(point),
    )
