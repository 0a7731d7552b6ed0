"""Jobs that measure points again: repeats of a plan, and arms in turn on one allocation.

What a repeat adds are jobs, never candidates or points: the ledger stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from infx.config.sites import Cluster
from infx.config.suggestions import did_you_mean
from infx.domain.axes import kebab, snake
from infx.domain.errors import UsageError
from infx.domain.findings import Finding
from infx.domain.identity import content_id
from infx.domain.partners import question_of, rest_of
from infx.domain.plan import Candidate, Job, Plan, marked
from infx.domain.point import SERVER_AXES, Point, short
from infx.plan.jobs import estimate_cost

__all__ = ["interleaved", "only", "repeated", "times_measured"]

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class _Arms:
    """Jobs whose arms differ in one axis alone, with those of their points that have a partner."""

    name: str
    parts: tuple[tuple[Job, tuple[Point, ...]], ...]


def repeated(plan: Plan, repeats: int, *, evaluations: bool = False) -> Plan:
    """Return the plan with every job ``repeats`` times: all of them once, then all again, so that
    what drifts hits all alike. Evaluations are measured once, unless they are asked for too."""
    again = [
        _part(job, _timed(job, evaluations), number)
        for number in range(2, repeats + 1)
        for job in plan.jobs
        if _timed(job, evaluations)
    ]
    return _with(plan, (*plan.jobs, *again))


def interleaved(plan: Plan, axis: str, repeats: int = 2, *, evaluations: bool = False) -> Plan:
    """Return the plan with the arms that differ in ``axis`` alone measured in turn: A B, B A, and
    so on, ``repeats`` times each, as a group for one allocation.

    What is measured once comes after the groups, on servers of its own: points without a partner,
    which a finding ``no-partner`` names, and evaluations unless they are asked for too. Raises
    UsageError ``bad-option``: no such axis, no such pair of arms, or an odd number of repeats.
    """
    name = _axis(axis)
    if repeats < 2 or repeats % 2:
        text = f"--interleave measures both arms as often first as last; {repeats} repeats cannot"
        raise UsageError("bad-option", text, hint="give an even number: --repeats 2")
    groups = [group for group in _groups(plan, name, evaluations) if group.parts]
    if not groups:
        raise _no_pair(plan, name)
    jobs = [job for group in groups for job in _in_turn(group, repeats)]
    taken = {(job.job_id, p.point_id) for g in groups for job, some in g.parts for p in some}
    left = [
        (j, tuple(p for p in j.points if (j.job_id, p.point_id) not in taken)) for j in plan.jobs
    ]
    once = [_part(job, points, 1) for job, points in left if points]
    alone = [p for _, some in left for p in some if p.mode == "throughput" or evaluations]
    findings = (*plan.findings, *([_alone(alone, name)] if alone else ()))
    return _with(replace(plan, findings=findings), (*jobs, *once))


def only(plan: Plan, point_id: str, cluster: Cluster | None = None) -> Plan:
    """Return the plan of one of its points, as a job of its own, on the plan's cluster or another.

    It stands by itself: what the files that made it hold by now does not matter. Raises
    StopIteration where the plan does not have the point.
    """
    job, point = next((j, p) for j in plan.jobs for p in j.points if p.point_id == point_id)
    alone = _part(job, (point,), 1)
    if cluster:
        arm = replace(point.arm, cluster=cluster.name)
        point = replace(point, arm=arm)
        alone = replace(
            alone,
            arm=arm,
            points=(point,),
            cluster=cluster.name,
            time_limit_s=cluster.limits.job,
        )
    run = Candidate(entry=point.entry, scenario=0, values={}, disposition="run", point_id=point_id)
    ledger = tuple(row for row in plan.ledger if _runs(row, point_id)) or (run,)
    return Plan(
        inputs={},
        candidates=1,
        counts={"run": 1},
        ledger=ledger,
        points=(point,),
        jobs=(alone,),
        cost=estimate_cost((alone,)),
    )


def _runs(row: Candidate, point_id: str) -> bool:
    return row.disposition == "run" and row.point_id == point_id


def times_measured(plan: Plan) -> int:
    """Return how often the plan measures what it measures most."""
    return max((job.repeat for job in plan.jobs), default=1)


def _with(plan: Plan, jobs: Sequence[Job]) -> Plan:
    return replace(plan, jobs=tuple(jobs), cost=estimate_cost(jobs))


def _timed(job: Job, evaluations: bool) -> tuple[Point, ...]:
    return tuple(p for p in job.points if evaluations or p.mode == "throughput")


def _part(job: Job, points: tuple[Point, ...], repeat: int, group: str = "") -> Job:
    """Return ``job`` for these points. The whole of it, the first time, keeps its identity: a run
    of an older plan is resumed by it."""
    if (points, repeat, group) == (job.points, job.repeat, job.group):
        return job
    content = [job.job_id, [point.point_id for point in points], repeat, group]
    return replace(
        job,
        job_id=content_id(content),
        name=marked(points[0].name, repeat),
        points=points,
        repeat=repeat,
        group=group,
    )


def _in_turn(group: _Arms, repeats: int) -> list[Job]:
    return [
        _part(job, points, number, group.name)
        for number in range(1, repeats + 1)
        for job, points in (group.parts if number % 2 else reversed(group.parts))
    ]


def _groups(plan: Plan, axis: str, evaluations: bool) -> list[_Arms]:
    arms: dict[str, list[Job]] = {}
    for job in plan.jobs:
        arms.setdefault(_rest(job, axis), []).append(job)
    return [_arms(key, jobs, axis, evaluations) for key, jobs in arms.items()]


def _arms(key: str, jobs: Sequence[Job], axis: str, evaluations: bool) -> _Arms:
    counts = Counter(_asked(point) for job in jobs for point in _timed(job, evaluations))
    paired = [
        (job, tuple(p for p in _timed(job, evaluations) if counts[_asked(p)] > 1)) for job in jobs
    ]
    parts = tuple((job, points) for job, points in paired if points)
    return _Arms(f"{kebab(axis)}-{short(key)}", parts)


def _rest(job: Job, axis: str) -> str:
    """Return the identity of what jobs share whose arms differ in the axis alone."""
    return content_id([job.cluster, rest_of(job.arm, axis)])


def _asked(point: Point) -> str:
    """Return the identity of what the point is asked and by whom: partners are asked the same."""
    return content_id([point.entry, point.harness, question_of(point)])


def _axis(name: str) -> str:
    if snake(name) in SERVER_AXES:
        return snake(name)
    hint = did_you_mean(name, map(kebab, SERVER_AXES))
    raise UsageError("bad-option", f"--interleave {name}: no axis of a server", hint=hint)


def _no_pair(plan: Plan, axis: str) -> UsageError:
    values = dict.fromkeys(str(getattr(job.arm.axes, axis)) for job in plan.jobs)
    told = ", ".join(values) or "none"
    text = f"--interleave {kebab(axis)}: no two servers of the plan differ in it alone"
    hint = f"its values there: {told}; write two in the matrix, or see infx plan --ledger"
    return UsageError("bad-option", text, hint=hint)


def _alone(points: Sequence[Point], axis: str) -> Finding:
    labels = [point.label for point in points[:_SHOWN]]
    shown = ", ".join(labels) + (" …" if len(points) > _SHOWN else "")
    many = "1 point has" if len(points) == 1 else f"{len(points)} points have"
    sentence = f"{many} no partner that differs in {kebab(axis)} alone: {shown}; measured once"
    return Finding("no-partner", "info", sentence)
