"""What the store knows of a run and of a point, without opening the point's record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from infx.domain.status import Status

__all__ = ["PointRow", "RunRow", "RunState"]

RunState = Literal["running", "ended", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run. ``source`` is what was swept, as typed; ``folder`` where its files are.

    ``state`` is what its driver last said: a run that says ``running`` while nobody holds its lock
    was killed.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One point of a run; ``attempt`` is the number of the attempt its status comes from."""

    run_id: str
    point_id: str
    job_id: str
    label: str
    mode: str
    status: Status
    attempt: int
