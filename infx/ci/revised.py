"""A plan with other points: some set aside, replaced or added, each still in the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from infx.domain.plan import Candidate, Disposition, Plan, Reused
from infx.domain.point import Point
from infx.plan.jobs import estimate_cost, make_jobs

__all__ = ["Aside", "added", "replaced", "set_aside"]


@dataclass(frozen=True, slots=True)
class Aside:
    """Why a planned point is not measured; ``run_id`` is the run that stands for it, if any."""

    disposition: Disposition
    rule: str
    sentence: str
    run_id: str = ""


def set_aside(plan: Plan, asides: Mapping[str, Aside]) -> Plan:
    """Return the plan without the points of these identities; their rows of the ledger say why."""
    gone = [asides[point.point_id] for point in plan.points if point.point_id in asides]
    if not gone:
        return plan
    counts, rules = Counter(plan.counts), Counter(plan.excluded_by)
    counts.update(aside.disposition for aside in gone)
    counts["run"] -= len(gone)
    rules.update(aside.rule for aside in gone)
    kept = [point for point in plan.points if point.point_id not in asides]
    return replace(
        _with(plan, kept),
        ledger=tuple(_aside(row, asides) for row in plan.ledger),
        counts=dict(+counts),
        excluded_by=dict(rules),
        reused=(*plan.reused, *_reused(plan, asides)),
    )


def _reused(plan: Plan, asides: Mapping[str, Aside]) -> list[Reused]:
    found = ((point, asides.get(point.point_id)) for point in plan.points)
    return [
        Reused(point=point, run_id=aside.run_id)
        for point, aside in found
        if aside and aside.disposition == "reused"
    ]


def _aside(row: Candidate, asides: Mapping[str, Aside]) -> Candidate:
    aside = asides.get(row.point_id)
    if aside is None or row.disposition != "run":
        return row
    kind, rule = aside.disposition, aside.rule
    return replace(row, disposition=kind, rule=rule, sentence=aside.sentence)


def replaced(plan: Plan, others: Mapping[str, Point]) -> Plan:
    """Return the plan with other points in the place of those of these identities."""
    points = [others.get(point.point_id, point) for point in plan.points]
    ids = {key: point.point_id for key, point in others.items()}
    ledger = (replace(row, point_id=ids.get(row.point_id, row.point_id)) for row in plan.ledger)
    return replace(_with(plan, points), ledger=tuple(ledger))


def added(plan: Plan, points: Sequence[Point]) -> Plan:
    """Return the plan with more points, each one more candidate; none may be in it already."""
    if not points:
        return plan
    rows = (
        Candidate(
            entry=point.entry,
            scenario=-1,
            values={"conc": point.conc},
            disposition="run",
            point_id=point.point_id,
        )
        for point in points
    )
    more = Counter(plan.counts) + Counter({"run": len(points)})
    return replace(
        _with(plan, [*plan.points, *points]),
        ledger=(*plan.ledger, *rows),
        counts=dict(more),
        candidates=plan.candidates + len(points),
    )


def _with(plan: Plan, points: Iterable[Point]) -> Plan:
    limits = {job.points[0].entry: job.time_limit_s for job in plan.jobs}
    kept = tuple(points)
    jobs = make_jobs(kept, limits)
    return replace(plan, points=kept, jobs=jobs, cost=estimate_cost(jobs))
