"""Plans of a few points and records of them, for tests of what keeps and runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.identity import content_id
from infx.domain.plan import Cost, Job, Plan
from infx.domain.point import Arm, FixedLengths, Model, Point
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import encode
from infx.domain.status import OK, PENDING, Status
from infx.store import PointKey, RunRow, attempt_dir, run_dir, unique_name


def arm(number: int = 0, **options: Any) -> Arm:
    return Arm(
        framework="stand-in",
        image="pypi:stand-in==1",
        image_digest="",
        recipe="stand-in",
        model=Model(name="tiny", prefix="tiny", precision="fp32", weights="random:0"),
        cluster="local",
        hardware="cpu",
        axes=Axes(conc=0, max_num_seqs=number + 1),
        acceptance=Acceptance(),
        options=options,
    )


def point(server: Arm, conc: int) -> Point:
    workload = FixedLengths(isl=8, osl=8, requests=4)
    identity = content_id([server.arm_id, conc])
    return Point(
        point_id=identity,
        curve_id=content_id(server.arm_id),
        series_id="series",
        entry="tiny",
        name=f"tiny.s{server.axes.max_num_seqs}.c{conc}",
        mode="throughput",
        conc=conc,
        queueing=False,
        arm=server,
        workload=workload,
    )


def job(number: int = 0, points: int = 2, limit_s: int = 60, **options: Any) -> Job:
    server = arm(number, **options)
    measured = tuple(point(server, conc) for conc in range(1, points + 1))
    return Job(
        job_id=content_id([p.point_id for p in measured]),
        name=f"tiny.s{number + 1}",
        arm=server,
        points=measured,
        cluster="local",
        time_limit_s=limit_s,
    )


def plan(*jobs: Job) -> Plan:
    jobs = jobs or (job(0), job(1))
    points = tuple(p for j in jobs for p in j.points)
    return Plan(
        inputs={},
        candidates=len(points),
        counts={"run": len(points)},
        ledger=(),
        points=points,
        jobs=jobs,
        cost=Cost(jobs=len(jobs), points=len(points), wall_s=30, gpu_hours=0),
    )


def run_row(results: Path, run_id: str = "20260102-030405-abcd") -> RunRow:
    return RunRow(
        run_id=run_id,
        created_s=1.0,
        plan_id="plan",
        source="tiny.yaml",
        project=str(results.parent),
        folder=str(run_dir(results, run_id)),
        executor="local",
        state="running",
        ended_s=0,
    )


def record(
    of: Point, run_id: str, job_id: str, number: int = 1, status: Status = OK
) -> PointRecord:
    name = unique_name(run_id, job_id, number)
    attempt = Attempt(run_id=run_id, job_id=job_id, number=number, unique_name=name)
    return PointRecord(point=of, status=status, attempt=attempt)


def write_point(folder: Path, of: Job, found: PointRecord) -> Path:
    """Write point.json as a job does."""
    path = attempt_dir(folder, of, found.attempt.number) / "points" / found.point.label
    path.mkdir(parents=True, exist_ok=True)
    (path / "point.json").write_bytes(encode(found))
    return path / "point.json"


def judge(found: PointRecord, _: Path) -> PointRecord:
    return replace(found, status=OK) if found.status.state == "measured" else found


def stands(whole: Plan, status: Status = PENDING) -> dict[PointKey, Status]:
    """The status of every point of a plan, all the same."""
    return {(j.job_id, p.point_id): status for j in whole.jobs for p in j.points}
