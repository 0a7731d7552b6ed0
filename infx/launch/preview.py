"""What a sweep would submit, without a run, a store or a cluster."""

from __future__ import annotations

from pathlib import Path

from infx.domain.plan import Plan
from infx.domain.record import Attempt
from infx.launch.executor import Executor, Order
from infx.store import attempt_dir, run_dir, unique_name

__all__ = ["scripts"]

RUN = "RUN"
"""Stands for the identity that a run gets when it is made."""


def scripts(executor: Executor, plan: Plan, results: Path) -> list[str]:
    """Return the exact job scripts of a plan; none where jobs have no script."""
    folder = run_dir(results, RUN)
    orders = [
        Order(
            attempt=Attempt(
                run_id=RUN,
                job_id=job.job_id,
                number=1,
                unique_name=unique_name(RUN, job.job_id, 1),
            ),
            job=job,
            folder=attempt_dir(folder, job, 1),
        )
        for job in plan.jobs
    ]
    return executor.scripts(orders) if orders else []
