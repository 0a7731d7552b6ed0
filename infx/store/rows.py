"""What the store knows of a run and of a point, without opening the point's record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.domain.plan import marked
from infx.domain.status import Status

__all__ = ["REPRO", "PointKey", "PointRow", "RunRow", "RunState"]

REPRO = "infx repro"
"""How the source of a run begins that measures a point of another run again."""

PointKey = tuple[str, str]
"""What tells the points of a run apart: the job and the point, which several jobs may repeat."""

RunState = Literal["running", "ended", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run. ``source`` is what was swept, as typed, or the whole of another command;
    ``folder`` where its files are.

    ``state`` is what its driver last said: a run that says ``running`` while nobody holds its lock
    was killed, or goes on without one; ``host`` is where that driver was. ``canary`` and
    ``fail_fast`` are how it was asked to be driven (None: by an infx that did not write it down).
    """

    run_id: str
    created_s: float
    plan_id: str
    source: str
    project: str
    folder: str
    executor: str
    state: RunState
    ended_s: float
    host: str = ""
    canary: bool | None = None
    fail_fast: bool = False

    @property
    def command(self) -> str:
        """What made it, as typed."""
        return self.source if self.source.startswith("infx ") else f"infx sweep {self.source}"

    @property
    def reproduces(self) -> bool:
        """True when it was made to measure a point of another run again."""
        return self.source.startswith(REPRO)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One point of a run, in one of the jobs that measure it: ``repeat`` counts these from 1.

    ``attempt`` is the number of the attempt that its status comes from.
    """

    run_id: str
    point_id: str
    job_id: str
    label: str
    mode: str
    status: Status
    attempt: int
    repeat: int = 1

    @property
    def key(self) -> PointKey:
        """What tells it from the other points of its run."""
        return self.job_id, self.point_id

    @property
    def shown(self) -> str:
        """Its label for people, with ``-r2`` where it is the second time that it is measured."""
        return marked(self.label, self.repeat)
