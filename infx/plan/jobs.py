"""Points to jobs, and what they will cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infx.domain.identity import content_id
from infx.domain.plan import Cost, Job
from infx.domain.point import Accuracy, Agentic, Point

__all__ = ["estimate_cost", "job_s", "make_jobs", "point_s"]

SERVER_START_S = 8.0
"""Start, readiness and stop of a small server (measured: 2 to 12 s on two cores)."""

CLIENT_S = 12.0
"""aiperf's own start and export for one point (measured: 8.5 s of CPU whatever the load)."""

PREPARE_S = 20.0
"""aiperf's prompts of recorded sessions, and the first request of each lane (measured: 15 s for a
few small sessions on two cores; the prompts of a public trace take minutes once a machine)."""

TOKEN_S = 0.05
QUESTION_S = 1.5
"""Time of one output token and of one question, until a measured run says better (a question of
the quickstart takes 1 s on infx's engine and 6 s on llama.cpp)."""

QUESTIONS = {"gsm8k": 1319, "gsm_mini": 500, "gsm_mini_heldout": 500}
"""Questions of a task without a limit (a test holds them to the tasks themselves)."""


def make_jobs(points: Sequence[Point], time_limits_s: Mapping[str, int]) -> tuple[Job, ...]:
    """Return one job for each server configuration, in order of first appearance.

    ``time_limits_s`` maps an entry to its cluster's limit.
    """
    groups: dict[str, list[Point]] = {}
    server_ids: dict[int, str] = {}
    for point in points:
        key = id(point.arm)
        if key not in server_ids:
            server_ids[key] = content_id([point.arm.cluster, point.arm.arm_id])
        groups.setdefault(server_ids[key], []).append(point)
    return tuple(_job(key, group, time_limits_s) for key, group in groups.items())


def point_s(point: Point) -> float:
    """Return the estimated seconds of one point, without the server's start."""
    load = point.workload
    if isinstance(load, Accuracy):
        return 5 + QUESTION_S * (load.limit or QUESTIONS.get(load.task, 1000))
    if isinstance(load, Agentic):
        return CLIENT_S + PREPARE_S + load.cache_warmup_s + load.duration_s
    if load.duration_s:
        return CLIENT_S + load.duration_s
    rounds = -(-(load.requests + load.warmup_requests) // point.conc)
    return CLIENT_S + rounds * load.osl * TOKEN_S


def job_s(job: Job) -> float:
    """Return the estimated seconds of one job."""
    return SERVER_START_S + sum(point_s(point) for point in job.points)


def estimate_cost(jobs: Sequence[Job]) -> Cost:
    """Return the estimate for jobs that run one after another; a CPU costs no GPU-hours."""
    seconds = [(job, job_s(job)) for job in jobs]
    gpu_s = sum(s * job.points[0].gpus for job, s in seconds if job.arm.accelerators)
    return Cost(
        jobs=len(jobs),
        points=sum(len(job.points) for job in jobs),
        wall_s=sum(s for _, s in seconds),
        gpu_hours=gpu_s / 3600,
    )


def _job(server_id: str, points: Sequence[Point], time_limits_s: Mapping[str, int]) -> Job:
    first = points[0]
    return Job(
        job_id=content_id([server_id, [p.point_id for p in points]]),
        name=first.name,
        arm=first.arm,
        points=tuple(points),
        cluster=first.arm.cluster,
        time_limit_s=time_limits_s[first.entry],
    )
