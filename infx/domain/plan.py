"""A plan: the ledger of every candidate, the points to run, the jobs that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.point import Arm, Point

__all__ = ["Candidate", "Cost", "Disposition", "Job", "Origin", "Plan", "Reused", "marked"]

Disposition = Literal["run", "reused", "excluded", "duplicate", "deferred"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One element of a cross product and what became of it.

    ``rule`` names what decided (an exclude rule's reason, a refusal's code, the point it repeats);
    ``where`` is the line of that rule. ``values`` holds the axes that the scenario varies.
    """

    entry: str
    scenario: int
    values: Mapping[str, Any]
    disposition: Disposition
    point_id: str = ""
    rule: str = ""
    sentence: str = ""
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an executor runs: one arm (one engine start) and the points measured on it.

    ``repeat`` counts the times that a run measures these points, from 1. Jobs of one ``group`` run
    one after another in the plan's order, on one allocation; "" is no group.
    """

    job_id: str
    name: str
    arm: Arm
    points: tuple[Point, ...]
    cluster: str
    time_limit_s: int = 3600
    repeat: int = 1
    group: str = ""

    @property
    def unit(self) -> str:
        """What goes as a whole: the job's group, or the job."""
        return self.group or self.job_id


def marked(name: str, repeat: int) -> str:
    """Return ``name`` of a job or point for people: ``-r2`` follows where it is the second time."""
    return f"{name}-r{repeat}" if repeat > 1 else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An estimate before anything is spent; ``points`` counts each time that one is measured."""

    jobs: int
    points: int
    wall_s: float
    gpu_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The change that a plan was made for: a pull request of ``repository`` (``owner/name``) at the
    commit ``head_sha``. ``submission_valid`` is False where a label shortened what is measured, or
    its data are of no published scenario; ``reusable`` where the labels let it stand for no other
    run."""

    repository: str
    pull_request: int
    head_sha: str
    submission_valid: bool = True
    reusable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reused:
    """A planned point that is not measured again: what ``run_id`` measured stands for it."""

    point: Point
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a sweep needs, and why it is that.

    ``inputs`` maps each file read to its sha256: a sweep of a saved plan refuses when one changed.
    ``counts`` holds the number of candidates for each disposition and ``candidates`` their total;
    ``ledger`` lists them (excluded ones are listed up to a cap, never uncounted). ``canaries`` are
    the jobs that go before the others of their entry, where a plan chooses them; ``origin`` is the
    change that asked for it (None: a person did). ``reused`` are not among ``points``.
    """

    schema_version: str = "1"
    inputs: Mapping[str, str]
    candidates: int
    counts: Mapping[str, int]
    ledger: tuple[Candidate, ...]
    points: tuple[Point, ...]
    jobs: tuple[Job, ...]
    findings: tuple[Finding, ...] = ()
    cost: Cost
    excluded_by: Mapping[str, int] = field(default_factory=dict)
    canaries: tuple[str, ...] = ()
    origin: Origin | None = None
    reused: tuple[Reused, ...] = ()

    @property
    def expected(self) -> tuple[Point, ...]:
        """All points of which a report has a result: those to measure, then those reused."""
        return (*self.points, *(one.point for one in self.reused))

    @property
    def plan_id(self) -> str:
        """Identity of the work: the jobs with their points."""
        return content_id([[job.job_id, [p.point_id for p in job.points]] for job in self.jobs])
