"""job.json: all that one attempt of a job is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from infx.config.sites import Container
from infx.domain.plan import Job
from infx.domain.point import Accuracy, Agentic, Arm, Point

__all__ = ["JobSpec", "Site"]

QUESTION_S = 10.0
"""The longest that a question may take on average; 1 to 6 s were measured on two cores."""

SESSIONS_S = 2 * 3600.0
"""What sessions may take beside their window: the prompts of a public trace, made once a machine,
the first request of each lane, which is the history of half a session, and the exports."""

MOST_QUESTIONS = 1319
"""Questions of an evaluation without a limit: those of GSM8K, the largest task that infx brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the machine that runs the job differs in, and no identity knows.

    ``models`` maps a recipe's weights to where they lie there. ``start_limit_s`` over 0 is used
    instead of the recipe's. A point's client may take ``point_limit_s`` before it counts as hung.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    start_limit_s: int = 0
    point_limit_s: float = 1800.0

    def placed(self, arm: Arm) -> Arm:
        """Return ``arm`` as it is launched here: weights and patience are the site's."""
        weights = self.models.get(arm.model.weights, arm.model.weights)
        return replace(
            arm,
            model=replace(arm.model, weights=weights),
            start_limit_s=self.start_limit_s or arm.start_limit_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One attempt: the arm to serve and the points still to be measured on it.

    The attempt's folder is the one that holds job.json; paths in the records are relative to
    ``run_dir``. ``port`` 0 takes one that ``unique_name`` determines. The job as a whole may take
    ``job.time_limit_s``. ``batch`` and ``task`` are as in `Attempt`: who lost the store finds the
    attempt at its scheduler by them.
    """

    run_id: str
    run_dir: str
    job: Job
    attempt: int
    unique_name: str
    scheduler_id: str = ""
    batch: str = ""
    task: int | None = None
    host: str = "127.0.0.1"
    port: int = 0
    site: Site = Site()

    def limit_s(self, point: Point) -> float:
        """Return the seconds that a point's client may take: more for many questions, and for what
        is timed."""
        load, limit_s = point.workload, self.site.point_limit_s
        if isinstance(load, Agentic):
            return limit_s + SESSIONS_S + load.cache_warmup_s + load.duration_s
        if not isinstance(load, Accuracy):
            return limit_s + (load.duration_s or 0)
        return max(limit_s, QUESTION_S * (load.limit or MOST_QUESTIONS))
