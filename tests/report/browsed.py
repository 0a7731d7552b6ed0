"""The report that the browser's tests open: every kind of mark, every filter, a baseline."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from infx.domain.plan import Plan
from infx.domain.record import PointRecord
from infx.report.build import build_runs
from infx.report.model import ReportModel, RunData
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import FACTS

__all__ = ["browsed", "many"]

NOW, BEFORE = "20261130-0910-now", "20261129-1740-before"


@cache
def browsed() -> ReportModel:
    """Return 32 points on four lines: two ranks, two KV types, mono or not, two entries; half of
    them repeated, one invalid, one reused, and a baseline that is 6 % slower. The fastest of each
    line begin so late that they are on no frontier of TTFT."""
    points = [p for p in many_points(320) if p.conc in (4, 64) and p.arm.axes.tp in (2, 8)]
    plan = _reusing(many_plan(points, repeats=2), points[3].point_id)
    once = {point.point_id for point in points[::2]}
    records = many_records(points, run_id=NOW, repeats=2, gain=1.06)
    kept = [r for r in records if r.attempt.repeat == 1 or r.point.point_id not in once]
    kept = [_taken(r) if r.point is points[3] else r for r in kept]
    kept = [_late(r) if r.point.arm.axes.tp == 8 and r.point.conc == 4 else r for r in kept]
    now = RunData(facts=replace(FACTS, run_id=NOW), plan=plan, records=tuple(kept))
    old = many_records(points, run_id=BEFORE, repeats=2)
    before = RunData(facts=replace(FACTS, run_id=BEFORE), plan=plan, records=tuple(old))
    return build_runs([now], baseline=[before])


@cache
def many(count: int) -> ReportModel:
    """Return a report of ``count`` points, each measured once."""
    points = many_points(count)
    run = RunData(facts=FACTS, plan=many_plan(points), records=tuple(many_records(points)))
    return build_runs([run])


def _reusing(plan: Plan, point_id: str) -> Plan:
    ledger = tuple(
        replace(c, disposition="reused") if c.point_id == point_id else c for c in plan.ledger
    )
    return replace(plan, ledger=ledger)


def _taken(record: PointRecord) -> PointRecord:
    return replace(record, attempt=replace(record.attempt, run_id=BEFORE))


def _late(record: PointRecord) -> PointRecord:
    seen = record.measurement
    if seen is None:
        return record
    late = replace(seen.ttft_ms, p90=seen.ttft_ms.p90 * 50)
    return replace(record, measurement=replace(seen, ttft_ms=late))
