"""The jobs of a run that are not launched: which may go now, on which nodes, which come back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from infx.domain.outcome import Ending
from infx.domain.plan import Job, Plan
from infx.domain.point import Point
from infx.domain.record import Attempt, PointRecord
from infx.domain.status import Status
from infx.launch.executor import Order
from infx.launch.fanout import Fanout, entry_of
from infx.launch.policy import RETRIED, Policy, bad_nodes, decide
from infx.store import PointKey, Store, kept

__all__ = ["Waiting"]


class Waiting:
    """``jobs`` maps the id of each to the job with the points that are left to measure.

    They go in the plan's order, but the rest of a group that has begun goes before all others.
    """

    def __init__(
        self, store: Store, run_id: str, plan: Plan, policy: Policy, fanout: Fanout
    ) -> None:
        self._store, self._run_id, self._policy, self._fanout = store, run_id, policy, fanout
        self._known = {job.job_id: job for job in plan.jobs}
        self._places = {job_id: place for place, job_id in enumerate(self._known)}
        self._begun: set[str] = set()
        self.jobs: dict[str, Job] = {}
        fanout.know(plan.jobs, self.statuses())

    def statuses(self) -> Mapping[PointKey, Status]:
        """Return the status of every point of the run."""
        return {row.key: row.status for row in self._store.points(self._run_id)}

    def ready(self, held: Collection[Job]) -> list[Job]:
        """Return the jobs that may be launched beside those that are open (``held``)."""
        return self._fanout.ready(sorted(self.jobs.values(), key=self._turn), held)

    def launched(self, job_id: str) -> None:
        """Take a job off the list: an executor has it."""
        self._begun |= {self._known[job_id].group} - {""}
        self.jobs.pop(job_id, None)

    def adopted(self, job_id: str) -> None:
        """Take a job off the list that an earlier drive launched."""
        self.launched(job_id)
        self._fanout.adopted(self._known[job_id])

    def go_on(self) -> None:
        """Leave given up what the drive before gave up: jobs that have their end, skipped ones too,
        but for those that are to be tried again."""
        statuses, (endings, failures) = self.statuses(), self._endings()

        def given_up(job: Job) -> bool:
            if not all(statuses[job.job_id, p.point_id].terminal for p in job.points):
                return False
            own = endings.get(job.job_id)
            return not (own and decide(own, failures, self._policy).again)

        self.jobs = {name: job for name, job in self.jobs.items() if not given_up(job)}

    def excluded(self, jobs: Iterable[Job]) -> list[tuple[str, ...]]:
        """Return the nodes that may not run each of the jobs."""
        endings, failures = self._endings()
        return [bad_nodes(endings.get(job.job_id, []), failures, self._policy) for job in jobs]

    def stopped(self, job: Job) -> bool:
        """Return True when nothing more of the job's entry is launched."""
        return self._fanout.stops(job)

    def leave_out(self) -> list[tuple[str, list[PointRecord]]]:
        """Skip the jobs of entries that were stopped; return their ids with what was recorded."""
        left = [job for job in self.jobs.values() if self.stopped(job)]
        return [(job.job_id, self._skip(job)) for job in left]

    def again(
        self, order: Order, records: Collection[PointRecord], ending: Ending
    ) -> tuple[Job | None, str]:
        """Take a job back after an attempt that left ``records``, when the policy says so; return
        it, with what the attempt was to measure and did not, and why (not)."""
        left = self._left(order, records)
        if ending.outcome not in RETRIED or not left.points:
            return None, ""
        endings, failures = self._endings()
        decision = decide(endings[left.job_id], failures, self._policy)
        if not decision.again:
            return None, f"{left.name}: not tried again: {decision.why}"
        self.jobs[left.job_id] = left
        others = f", not on {' '.join(decision.exclude)}" if decision.exclude else ""
        return left, f"{left.name}: tried again{others}: {decision.why}"

    def over(self, job_id: str, statuses: Collection[Status]) -> None:
        """Take how a job ended for good; it may stop its entry."""
        self._fanout.ended(self._known[job_id], statuses)

    def _left(self, order: Order, records: Collection[PointRecord]) -> Job:
        """Return the order's job with its points that have no result of it. What an adopted one
        was asked is not known: what stands is not measured again."""
        done = {record.point.point_id for record in records if kept(record.status)}
        if order.adopted:
            known = self.statuses().items()
            done |= {
                point for (job, point), status in known if job == order.job.job_id and kept(status)
            }
        points = tuple(point for point in order.job.points if point.point_id not in done)
        return replace(order.job, points=points)

    def _turn(self, job: Job) -> tuple[bool, int]:
        return job.group not in self._begun, self._places[job.job_id]

    def _endings(self) -> tuple[Mapping[str, Sequence[Ending]], Sequence[Ending]]:
        """Return the ended attempts by job, and of the whole run those that the machine failed."""
        endings = self._store.endings(self._run_id)
        return endings, [e for group in endings.values() for e in group if e.outcome == "infra"]

    def _skip(self, job: Job) -> list[PointRecord]:
        del self.jobs[job.job_id]
        status = Status("skipped", *self._fanout.stopped[entry_of(job)])
        records = [self._skipped(point, job, status) for point in job.points]
        for record in records:
            self._store.save(record)
        return records

    def _skipped(self, point: Point, job: Job, status: Status) -> PointRecord:
        attempt = Attempt(run_id=self._run_id, job_id=job.job_id, number=0, repeat=job.repeat)
        return PointRecord(point=point, status=status, attempt=attempt)
