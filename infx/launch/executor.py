"""What the loop asks of whatever runs jobs: this machine, or a cluster's scheduler."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from infx.domain.plan import Job
from infx.domain.record import Attempt
from infx.job.spec import JobSpec
from infx.launch.policy import Policy

__all__ = ["Executor", "JobState", "Order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt to run: ``folder`` is its own and holds job.json; ``job`` the points it measures.

    ``adopted`` attempts were launched by an infx process that is gone; ``exclude`` names nodes that
    failed the job before.
    """

    attempt: Attempt
    job: Job
    folder: Path
    adopted: bool = False
    exclude: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The attempt's unique name, by which every executor knows it."""
        return self.attempt.unique_name


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """Where an attempt is. ``unknown`` (no answer) never changes anything; ``suspect`` is an end
    that only one of the scheduler and the job's own record tells, and is waited for.

    ``code`` (of infx.domain.codes) is why it ended, where the executor knows; ``sentence`` why it
    waits, is suspect or ended; ``void`` says that it never ran, or ended with its driver only: its
    missing points are as if it had not been. ``remark`` is something odd about a good end.
    """

    phase: Literal["queued", "running", "suspect", "ended", "unknown"]
    exit_code: int | None = None
    code: str = ""
    sentence: str = ""
    void: bool = False
    remark: str = ""
    scheduler_id: str = ""
    node: str = ""


class Executor(Protocol):
    """Runs attempts. Knows nothing of points, stores or verdicts.

    ``name`` is the cluster's; ``tick_s`` how often it likes to be polled; ``policy`` how often it
    tries again; ``durable`` says that jobs go on without the process that drives them.
    """

    name: str
    tick_s: float
    policy: Policy
    durable: bool

    def check(self, jobs: Sequence[Job]) -> None:
        """Raise UsageError or InfraError for what can be known to fail, before a run is made."""

    def scripts(self, orders: Sequence[Order]) -> list[str]:
        """Return the exact scripts that would be submitted; none where jobs have no script."""

    def arrange(self, orders: Sequence[Order], held: Collection[Order]) -> list[Order]:
        """Return those that may be submitted now beside the ``held`` ones, told their batches."""

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return the spec as the job sees it where it runs."""

    def submit(self, orders: Sequence[Order]) -> Mapping[str, str]:
        """Launch arranged orders and return the scheduler's id of each that was accepted, by name.

        The id is empty where nobody knows (yet) whether it was. One that is not in the answer was
        surely not accepted and is offered again (back-pressure). Raises InfraError
        ``launch-failed``.
        """

    def poll(self, orders: Sequence[Order]) -> Mapping[str, JobState]:
        """Return where each attempt is, by name, with one query for all of them."""

    def cancel(self, orders: Sequence[Order], *, at_once: bool = False) -> None:
        """Ask attempts to stop and keep their evidence; ``at_once`` kills them."""

    def notices(self) -> list[str]:
        """Return what people should know since the last call."""

    def close(self) -> None:
        """Let go: a local job ends with its driver, a scheduler's job goes on."""
