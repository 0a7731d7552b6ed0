"""What the loop asks of whatever runs jobs: this machine, or a cluster's scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from infx.domain.plan import Job
from infx.domain.record import Attempt

__all__ = ["Executor", "JobState", "Order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attempt to run: ``folder`` is its own and holds job.json; ``job`` the points it measures.

    ``adopted`` attempts were launched by an infx process that is gone.
    """

    attempt: Attempt
    job: Job
    folder: Path
    adopted: bool = False

    @property
    def name(self) -> str:
        """The attempt's unique name, by which every executor knows it."""
        return self.attempt.unique_name


@dataclass(frozen=True, slots=True)
class JobState:
    """Where an attempt is. ``unknown`` (no answer) never changes anything.

    ``reason`` is a code when the executor ended it (``time-limit``) or its own word otherwise.
    """

    phase: Literal["queued", "running", "ended", "unknown"]
    exit_code: int | None = None
    reason: str = ""


class Executor(Protocol):
    """Runs attempts. Knows nothing of points, stores or verdicts.

    ``capacity`` attempts may be open at once; ``tick_s`` is how often it likes to be polled.
    """

    name: str
    capacity: int
    tick_s: float

    def submit(self, orders: Sequence[Order]) -> Mapping[str, str]:
        """Launch attempts and return the scheduler's id of each that was accepted, by name.

        One that is not in the answer was not accepted yet and is offered again (back-pressure).
        Raises InfraError ``launch-failed``.
        """

    def poll(self, orders: Sequence[Order]) -> Mapping[str, JobState]:
        """Return where each attempt is, by name, with one query for all of them."""

    def cancel(self, orders: Sequence[Order], *, at_once: bool = False) -> None:
        """Ask attempts to stop and keep their evidence; ``at_once`` kills them."""

    def close(self) -> None:
        """Let go: a local job ends with its driver, a scheduler's job goes on."""
