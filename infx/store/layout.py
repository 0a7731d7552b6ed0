"""Names and places: where a run keeps its files and what its attempts are called."""

from __future__ import annotations

from pathlib import Path

from infx.domain.plan import Job
from infx.domain.point import short

__all__ = [
    "JUDGED",
    "PLAN",
    "POINT",
    "RESULT",
    "RUN",
    "SPEC",
    "attempt_dir",
    "job_dir",
    "point_files",
    "run_dir",
    "unique_name",
]

PLAN = "plan.json"
RUN = "run.json"
SPEC, RESULT = "job.json", "result.json"
"""Of an attempt: what it is told, and the record that ends it."""
POINT, JUDGED = "point.json", "judged.json"
"""Of a point: its record, and the verdict on it where its evidence was left behind."""


def run_dir(results: Path, run_id: str) -> Path:
    """Return the folder of a run."""
    return results / "runs" / run_id


def job_dir(run_dir: Path, job: Job) -> Path:
    """Return the folder of a job's attempts."""
    return run_dir / "jobs" / f"{job.name}-{short(job.job_id)}"


def attempt_dir(run_dir: Path, job: Job, number: int) -> Path:
    """Return the folder of one attempt: job.json, events.jsonl, logs, points/."""
    return job_dir(run_dir, job) / f"a{number}"


def point_files(attempt_dir: Path) -> list[Path]:
    """Return every point.json of an attempt, in order of name."""
    return sorted(attempt_dir.glob(f"points/*/{POINT}"))


def unique_name(run_id: str, job_id: str, number: int) -> str:
    """Return the name by which a scheduler knows an attempt: ``infx-<run>-<job>-a<number>``."""
    return f"infx-{run_id}-{short(job_id)}-a{number}"
