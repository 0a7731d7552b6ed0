"""Making a run: its folder, its identity, its rows; what is left to measure of an old one."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from infx.domain.errors import EmptyPlanError, InfraError
from infx.domain.plan import Job, Plan
from infx.domain.point import Point
from infx.domain.serial import encode_pretty
from infx.domain.status import Status
from infx.plan.saved import write_plan
from infx.store import FILE, PointKey, RunRow, Store, kept, run_dir, writing
from infx.store.layout import PLAN, RUN

__all__ = ["check_space", "create_run", "new_run_id", "open_store", "to_measure"]

LEAST_FREE_BYTES = 512 * 1024**2
"""A point's raw exports take up to some 20 MB, a server's log as much; a full disk loses them."""


def new_run_id(now_s: float) -> str:
    """Return ``20260131-154502-3fa1``: local time, so that names sort, and four random digits."""
    return time.strftime("%Y%m%d-%H%M%S-", time.localtime(now_s)) + secrets.token_hex(2)


def open_store(results: Path) -> Store:
    """Return the store of a results folder, both made where they do not exist.

    Raises InfraError ``results-unwritable``.
    """
    with writing(results):
        (results / "runs").mkdir(parents=True, exist_ok=True)
    return Store(results / FILE)


def create_run(
    store: Store,
    results: Path,
    plan: Plan,
    *,
    source: str,
    project: Path,
    executor: str,
    canary: bool | None = None,
    fail_fast: bool = False,
) -> RunRow:
    """Make the run's folder with plan.json and run.json, then its rows; return the run.

    Raises EmptyPlanError, or InfraError ``disk-full`` when too little space is free.
    """
    if not plan.expected:
        raise EmptyPlanError(
            "empty-plan", "the plan holds no point to run", hint="infx plan --ledger"
        )
    check_space(results)
    now_s = time.time()
    folder = _new_folder(results, now_s)
    row = RunRow(
        run_id=folder.name,
        created_s=now_s,
        plan_id=plan.plan_id,
        source=source,
        project=str(project),
        folder=str(folder),
        executor=executor,
        state="running",
        ended_s=0,
        canary=canary,
        fail_fast=fail_fast,
    )
    with writing(folder):
        write_plan(plan, folder / PLAN)
        (folder / RUN).write_text(encode_pretty(row))
        _to_disk(folder / PLAN, folder / RUN, folder)
    store.create_run(row, plan)
    return row


def _new_folder(results: Path, now_s: float) -> Path:
    """Return a new folder of a run with ``jobs/`` in it; a name that is taken is drawn again."""
    while True:
        folder = run_dir(results, new_run_id(now_s)).absolute()
        with writing(folder), suppress(FileExistsError):
            (folder / "jobs").mkdir(parents=True)
            return folder


def check_space(folder: Path, least_bytes: int = LEAST_FREE_BYTES) -> None:
    """Raise InfraError ``disk-full`` when less than ``least_bytes`` are free under ``folder``,
    ``results-unwritable`` when it is gone."""
    with writing(folder):
        free = shutil.disk_usage(folder).free
    if free < least_bytes:
        raise InfraError(
            "disk-full",
            f"{folder} has {free >> 20} MiB free; a sweep needs {least_bytes >> 20} MiB",
            hint="free space, or name another folder with --results",
        )


def to_measure(
    plan: Plan,
    statuses: Mapping[PointKey, Status],
    *,
    retry_failed: bool = False,
    time_limit_s: int = 0,
) -> dict[str, Job]:
    """Return, by job id, the jobs with the points that have no kept result; others are left out.

    ``retry_failed`` adds failed and invalid points but those that
    passed their time limit: they are added, under the new limit, when ``time_limit_s`` is larger.
    """

    def late(point: Point, job: Job) -> bool:
        return statuses[job.job_id, point.point_id].code == "time-limit"

    def wanted(point: Point, job: Job) -> bool:
        if late(point, job):
            return time_limit_s > job.time_limit_s
        status = statuses[job.job_id, point.point_id]
        return status.state != "ok" if retry_failed else not kept(status)

    found: dict[str, Job] = {}
    for job in plan.jobs:
        points = tuple(point for point in job.points if wanted(point, job))
        if points:
            again = any(late(point, job) for point in points)
            limit_s = time_limit_s if again else job.time_limit_s
            found[job.job_id] = replace(job, points=points, time_limit_s=limit_s)
    return found


def _to_disk(*paths: Path) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
