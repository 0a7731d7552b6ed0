"""What a pull request changes, and what CI does for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from infx.changelog.entry import Entry
from infx.ci.canary import Canary
from infx.ci.labels import Settings
from infx.ci.reuse import Command
from infx.domain.findings import Finding
from infx.domain.plan import Job, Plan
from infx.domain.point import Agentic, Point

__all__ = ["Change", "CiPlan", "Decision", "submission_valid"]

Decision = Literal["sweep", "reuse", "publish", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a pull request changes: the plans of its base and head, what it adds to the changelog,
    and what was found while they were read; ``head_sha`` is the commit that it is
    measured as: the event's last one, or that of ``head`` where git does not have it."""

    base: Plan
    head: Plan
    additions: tuple[Entry, ...] = ()
    findings: tuple[Finding, ...] = ()
    head_sha: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiPlan:
    """What CI does for a pull request, and why.

    - ``sweep``: measures the points of ``plan``, the jobs of ``canaries`` first; ``runs`` stand for
      those that the plan reuses.
    - ``reuse``: ``runs`` stand for all of ``plan``, as a comment asks (``reuse``), or as nothing is
      left to measure.
    - ``publish``: the pull request was merged; ``runs`` have measured all that it selects.
    - ``nothing``.

    ``faults`` are errors: why no run stands for what is planned; then ``runs`` is empty.
    ``submission_valid`` is False where a label shortened what is measured, or its data are of no
    published scenario; ``reusable`` where it may stand for no other run.
    """

    decision: Decision
    reason: str
    pull_request: int
    head_sha: str
    settings: Settings | None = None
    entries: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()
    plan: Plan | None = None
    reuse: Command | None = None
    runs: tuple[str, ...] = ()
    submission_valid: bool = True
    reusable: bool = True
    warnings: tuple[Finding, ...] = ()
    faults: tuple[Finding, ...] = ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs to run, in order."""
        return self.plan.jobs if self.plan and self.decision == "sweep" else ()


def submission_valid(points: Iterable[Point]) -> bool:
    """Return True when what is measured so may stand beside published data."""
    loads = (point.workload for point in points)
    return all(load.submission_valid for load in loads if isinstance(load, Agentic))
