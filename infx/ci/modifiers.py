"""What labels make of a plan: evaluations at every point, and shorter replays."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from infx.ci.diff import identity
from infx.ci.labels import Fast
from infx.ci.revised import added, replaced
from infx.ci.selection import computation_id
from infx.domain.plan import Plan
from infx.domain.point import Agentic, Point
from infx.plan.resolve import identities

__all__ = ["evaluated", "evaluations_at", "shortened"]


def evaluations_at(plan: Plan, point_ids: Collection[str]) -> tuple[Point, ...]:
    """Return the evaluations of the very servers of these throughput points, at their concurrency.

    Each is made from the evaluation that its entry plans for the same computation; an entry that
    plans none has none.
    """
    scored: dict[tuple[str, str], list[Point]] = {}
    for point in plan.points:
        if point.mode == "evaluation":
            key = point.entry, computation_id(point.arm)
            scored.setdefault(key, []).append(point)
    timed = (point for point in plan.points if point.point_id in point_ids)
    made = (
        _at(score, point)
        for point in timed
        for score in scored.get((point.entry, computation_id(point.arm)), ())
    )
    return tuple({point.point_id: point for point in made}.values())


def evaluated(plan: Plan, evaluations: Collection[Point]) -> Plan:
    """Return the plan with those of the evaluations that it lacks."""
    known = {point.point_id for point in plan.points}
    return added(plan, [point for point in evaluations if point.point_id not in known])


def shortened(plan: Plan, fast: Fast) -> Plan:
    """Return the plan with its replays of recorded sessions so short: none is valid for submission,
    and none has the identity of a whole one."""
    whole = (point for point in plan.points if isinstance(point.workload, Agentic))
    return replaced(plan, {point.point_id: _short(point, fast) for point in whole})


def _at(score: Point, point: Point) -> Point:
    """Return the evaluation ``score`` on the server of ``point``, with real acceptance."""
    arm = replace(point.arm, acceptance=score.arm.acceptance)
    made = replace(
        score,
        arm=arm,
        conc=point.conc,
        queueing=point.queueing,
        name=f"{score.name}-c{point.conc}",
        expressions=point.expressions,
    )
    return _identified(made)


def _short(point: Point, fast: Fast) -> Point:
    load = point.workload
    assert isinstance(load, Agentic)
    made = replace(
        load,
        kind="agentic-fast",
        duration_s=min(load.duration_s, fast.duration_s),
        warmup_requests_per_lane=fast.warmup_requests_per_lane,
        cache_warmup_s=0,
    )
    name = point.name.replace("-agentic-", "-agentic-fast-", 1)
    return _identified(replace(point, workload=made, name=name))


def _identified(point: Point) -> Point:
    """Return the point with the identities of its content."""
    point_id, curve_id, series_id = identities(identity(point), point.expressions)
    return replace(point, point_id=point_id, curve_id=curve_id, series_id=series_id)
