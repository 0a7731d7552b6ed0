"""Which jobs may go now: the canary of an entry first, then the rest; nothing of a stopped one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from infx.domain.plan import Job
from infx.domain.status import Status
from infx.plan.jobs import job_s

__all__ = ["Fanout", "entry_of"]

PROOF = ("ok", "invalid", "measured")
"""States of a point whose server ran and answered."""


NO_FAILURE = ("ok", "measured", "cancelled")


def entry_of(job: Job) -> str:
    """Return the matrix entry that a job measures."""
    return job.points[0].entry


@dataclass(slots=True)
class Fanout:
    """``canary``: an entry's cheapest job must measure something before its others are launched.
    ``fail_fast``: an entry's first failure stops it. ``stopped`` maps an entry to (code, why)."""

    canary: bool = False
    fail_fast: bool = False
    proven: set[str] = field(default_factory=set)
    canaries: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)

    def know(self, jobs: Iterable[Job], statuses: Mapping[str, Status]) -> None:
        """Take what an earlier drive of the run has shown: its entries need no canary again."""
        for job in jobs:
            if any(statuses[point.point_id].state in PROOF for point in job.points):
                self.proven.add(entry_of(job))

    def ready(self, waiting: Iterable[Job], held: Collection[Job]) -> list[Job]:
        """Return the jobs to launch, in order, beside those that are open (``held``)."""
        open_ids = {job.job_id for job in held}
        busy = {entry_of(job) for job in held}
        jobs: dict[str, list[Job]] = {}
        for job in waiting:
            if job.job_id not in open_ids and entry_of(job) not in self.stopped:
                jobs.setdefault(entry_of(job), []).append(job)
        return [job for entry, group in jobs.items() for job in self._going(entry, group, busy)]

    def ended(self, job: Job, statuses: Collection[Status]) -> None:
        """Take how a job ended for good."""
        entry = entry_of(job)
        bad = next((s for s in statuses if s.state not in NO_FAILURE), None)
        if any(status.state in PROOF for status in statuses):
            self.proven.add(entry)
        if bad is None or entry in self.stopped:
            return
        if self.canaries.get(entry) == job.job_id and entry not in self.proven:
            self.stopped[entry] = ("canary-failed", f"{job.name} went first and ended {bad}")
        elif self.fail_fast:
            self.stopped[entry] = ("stopped-early", f"{job.name} ended {bad}")

    def _going(self, entry: str, jobs: list[Job], busy: Collection[str]) -> list[Job]:
        if not self.canary or entry in self.proven:
            return jobs
        if entry in busy:  # by its canary, or by what an earlier drive launched
            return []
        cheapest = min(jobs, key=job_s)
        self.canaries[entry] = cheapest.job_id
        return [cheapest]
