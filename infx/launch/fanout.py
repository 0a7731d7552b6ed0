"""Which jobs may go now: the canary of an entry first, then the rest; nothing of a stopped one.

The jobs of a group go together: a group is a canary as a whole, and one that has begun is measured
to its end, whatever a part of it has shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from infx.domain.plan import Job
from infx.domain.status import Status
from infx.plan.jobs import job_s
from infx.store.rows import PointKey

__all__ = ["Fanout", "entry_of"]

PROOF = ("ok", "invalid", "measured")
"""States of a point whose server ran and answered."""


NO_FAILURE = ("ok", "measured", "cancelled")


def entry_of(job: Job) -> str:
    """Return the matrix entry that a job measures."""
    return job.points[0].entry


@dataclass(slots=True)
class Fanout:
    """``canary``: an entry's cheapest job must measure something before its others are launched;
    where some of its jobs are ``chosen``, each of these.
    ``fail_fast``: an entry's first failure stops it. ``stopped`` maps an entry to (code, why);
    ``canaries`` to the jobs that went first and have not ended. ``spared`` are groups of a stopped
    entry that go on: a part of theirs was its failure."""

    canary: bool = False
    fail_fast: bool = False
    chosen: frozenset[str] = frozenset()
    proven: set[str] = field(default_factory=set)
    canaries: dict[str, set[str]] = field(default_factory=dict)
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)
    spared: set[str] = field(default_factory=set)

    def know(self, jobs: Iterable[Job], statuses: Mapping[PointKey, Status]) -> None:
        """Take what an earlier drive of the run has shown: its entries need no canary again."""
        unproven: set[str] = set()
        for job in jobs:
            if any(statuses[job.job_id, p.point_id].state in PROOF for p in job.points):
                self.proven.add(entry_of(job))
            elif job.job_id in self.chosen:
                unproven.add(entry_of(job))
        self.proven -= unproven

    def adopted(self, job: Job) -> None:
        """Take a job that an earlier drive launched and nobody saw end: where its entry has shown
        nothing yet, it went first."""
        entry = entry_of(job)
        if self.canary and entry not in self.proven:
            self.canaries.setdefault(entry, set()).add(job.job_id)

    def ready(self, waiting: Iterable[Job], held: Collection[Job]) -> list[Job]:
        """Return the jobs to launch, in order, beside those that are open (``held``).

        A part of a group that is open waits for its end: two parts never run side by side.
        """
        open_units = {job.unit for job in held}
        busy = {entry_of(job) for job in held}
        able = [job for job in waiting if job.unit not in open_units and not self.stops(job)]
        jobs: dict[str, list[Job]] = {}
        for job in able:
            jobs.setdefault(entry_of(job), []).append(job)
        units = {unit for entry, some in jobs.items() for unit in self._going(entry, some, busy)}
        return [job for job in able if job.unit in units]

    def stops(self, job: Job) -> bool:
        """Return True when nothing more of the job's entry is launched, and the job neither."""
        return entry_of(job) in self.stopped and job.group not in self.spared

    def ended(self, job: Job, statuses: Collection[Status]) -> None:
        """Take how a job ended for good."""
        entry = entry_of(job)
        bad = next((s for s in statuses if s.state not in NO_FAILURE), None)
        proof = any(status.state in PROOF for status in statuses)
        first = self.canaries.get(entry, set())
        led, more = job.job_id in first, first - {job.job_id}
        self.canaries[entry] = more
        if proof and not more & self.chosen:
            self.proven.add(entry)
        if bad is None or entry in self.stopped:
            return
        alone = job.job_id in self.chosen and not proof
        if led and (alone or (not more and entry not in self.proven)):
            self.stopped[entry] = ("canary-failed", f"{job.name} went first and ended {bad}")
        elif self.fail_fast:
            self.stopped[entry] = ("stopped-early", f"{job.name} ended {bad}")
            self.spared |= {job.group} - {""}

    def _going(self, entry: str, jobs: list[Job], busy: Collection[str]) -> set[str]:
        """Return the units of an entry that may go."""
        if not self.canary or entry in self.proven:
            return {job.unit for job in jobs}
        if entry in busy:  # by its canary, or by what an earlier drive launched
            return set()
        going = {job.unit for job in jobs if job.job_id in self.chosen} or {_cheapest(jobs)}
        self.canaries[entry] = {job.job_id for job in jobs if job.unit in going}
        return going


def _cheapest(jobs: Iterable[Job]) -> str:
    """Return the unit of least time; what is left of one that had begun is cheaper than it was."""
    costs: dict[str, float] = {}
    for job in jobs:
        costs[job.unit] = costs.get(job.unit, 0.0) + job_s(job)
    return min(costs, key=lambda unit: costs[unit])
