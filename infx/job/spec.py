"""job.json: all that one attempt of a job is told."""

from __future__ import annotations

from dataclasses import dataclass

from infx.domain.plan import Job
from infx.domain.point import Accuracy, Point

__all__ = ["JobSpec"]

QUESTION_S = 10.0
"""The longest that a question may take on average; 1 to 6 s were measured on two cores."""

MOST_QUESTIONS = 1319
"""Questions of an evaluation without a limit: those of GSM8K, the largest task that infx brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One attempt: the arm to serve and the points still to be measured on it.

    The attempt's folder is the one that holds job.json; paths in the records are relative to
    ``run_dir``. ``port`` 0 takes a free one. A point's client may take ``point_limit_s`` before it
    counts as hung; the job as a whole ``job.time_limit_s``.
    """

    run_id: str
    run_dir: str
    job: Job
    attempt: int
    unique_name: str
    scheduler_id: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    point_limit_s: float = 1800.0

    def limit_s(self, point: Point) -> float:
        """Return the seconds that a point's client may take: more for many questions."""
        load = point.workload
        if not isinstance(load, Accuracy):
            return self.point_limit_s
        return max(self.point_limit_s, QUESTION_S * (load.limit or MOST_QUESTIONS))
