"""job.json: all that one attempt of a job is told."""

from __future__ import annotations

from dataclasses import dataclass

from infx.domain.plan import Job

__all__ = ["JobSpec"]


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
