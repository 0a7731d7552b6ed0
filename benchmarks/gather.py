"""Time `infx gather` of a run of 1,000 points as a whole process.

    python -m benchmarks.gather [--save] [--repeats 3] [--points 1000] [--requests 100]

The run is planned by infx itself and its folder is as jobs leave it: ten points an engine start,
each with its record and an export of so many requests, which all are read and judged. The store
is empty at first (``new``), then holds the run (``again``). `counting_s` is the time of a
counting loop, 0.4 s on a quiet core of 2024: machines are shared and noisy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.exports import START_NS, write_export
from benchmarks.plan import children_cpu_s, counting_s
from benchmarks.saving import tell
from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.plan import Job, Plan
from infx.domain.point import Point
from infx.domain.record import Attempt, EngineCounters, PointRecord, Provenance
from infx.domain.serial import encode_pretty
from infx.domain.status import Status
from infx.plan.make import make_plan
from infx.plan.saved import write_plan
from infx.store import FILE, RunRow, attempt_dir, run_dir, unique_name

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/gather.json"
AIM_S = 10.0
RUN = "20261129-174000-many"
STARTED_S = START_NS / 1e9 - 10

ENTRY = """
bench:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  scenarios:
    - workload: {{isl: 64, osl: 32, requests: {requests}}}
      axes:
        conc: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        max-num-seqs: 16
        max-model-len: {lengths}
"""


def planned(folder: Path, points: int, requests: int) -> Plan:
    """Return infx's own plan of so many points, ten a server configuration."""
    lengths = [512 + 16 * arm for arm in range(max(1, points // 10))]
    path = folder / "matrix.yaml"
    path.write_text(ENTRY.format(requests=requests, lengths=lengths))
    plan = make_plan(load_matrix([path], Project.find(ROOT)))
    assert len(plan.points) == max(10, points), len(plan.points)
    return plan


def write_run(results: Path, plan: Plan, requests: int) -> Path:
    """Write the folder of a run that measured all of ``plan``; return it."""
    folder = run_dir(results, RUN)
    folder.mkdir(parents=True)
    row = RunRow(
        run_id=RUN, created_s=STARTED_S, plan_id=plan.plan_id, source="matrix.yaml",
        project=str(results.parent), folder=str(folder), executor="local", state="ended",
        ended_s=STARTED_S + 900,
    )  # fmt: skip
    write_plan(plan, folder / "plan.json")
    (folder / "run.json").write_text(encode_pretty(row))
    for job in plan.jobs:
        for point in job.points:
            place = attempt_dir(folder, job, 1) / "points" / point.label
            write_export(place / "aiperf", point.conc, requests)
            (place / "point.json").write_text(encode_pretty(record(job, point, place, folder)))
    return folder


def record(job: Job, point: Point, place: Path, folder: Path) -> PointRecord:
    """Return what a job writes of a point that it measured."""
    attempt = Attempt(
        run_id=RUN, job_id=job.job_id, number=1, unique_name=unique_name(RUN, job.job_id, 1),
        started_s=STARTED_S, ended_s=STARTED_S + 900,
    )  # fmt: skip
    argv = tuple(f"--option-{number}=value" for number in range(40))
    told = Provenance(
        infx_version="0.1.0", git_revision="0" * 40, git_dirty=False, server_argv=argv,
        packages={f"package-{number}": "1.2.3" for number in range(60)}, client_argv=argv,
        host={"cpu": "2 × x86-64", "kernel": "6.1"}, env={f"NAME_{n}": "value" for n in range(30)},
        server={"max-num-seqs": 16, "max-model-len": point.arm.axes.max_model_len},
    )  # fmt: skip
    return PointRecord(
        point=point, status=Status("measured"), attempt=attempt, provenance=told,
        counters=EngineCounters(preemptions=0, prefix_cache_hit_share=0.25),
        artifacts={"aiperf": (place / "aiperf").relative_to(folder).as_posix()},
        phases_s={"client": 880.0},
    )  # fmt: skip


def gathered(results: Path, run: Path, points: int) -> tuple[float, float]:
    """Return the seconds of one `infx gather`, start of the interpreter included, and those that
    it had a core."""
    argv = [sys.executable, "-m", "infx", "gather", str(run), "--results", str(results), "--json"]
    started, had = time.perf_counter(), children_cpu_s()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, cpu = time.perf_counter() - started, children_cpu_s() - had
    states = [point["status"]["state"] for point in json.loads(done.stdout)["data"]["points"]]
    assert states == ["ok"] * points, set(states)
    return seconds, cpu


def measure(points: int, requests: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of gathering a run of ``points``, into a new store and again."""
    with tempfile.TemporaryDirectory() as at:
        results = Path(at) / "results"
        results.mkdir()
        plan = planned(results, points, requests)
        run = write_run(results, plan, requests)
        files = [path for path in run.rglob("*") if path.is_file()]
        times: dict[str, list[tuple[float, float]]] = {"new": [], "again": []}
        for _ in range(repeats):
            for path in results.glob(FILE + "*"):
                path.unlink()
            for kind in times:
                times[kind].append(gathered(results, run, len(plan.points)))
        size_mb = sum(path.stat().st_size for path in files) / 1e6
    return {
        "points": len(plan.points), "jobs": len(plan.jobs), "requests_a_point": requests,
        "size_mb": round(size_mb, 1),
        "median_s": {k: round(statistics.median(s for s, _ in v), 2) for k, v in times.items()},
        "median_cpu_s": {k: round(statistics.median(c for _, c in v), 2) for k, v in times.items()},
        "seconds": {kind: [round(s, 2) for s, _ in one] for kind, one in times.items()},
    }  # fmt: skip


def main() -> None:
    """Measure, print, and save when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    results = {
        "command": f"python -m benchmarks.gather --repeats {options.repeats}"
        f" --points {options.points} --requests {options.requests}",
        "aim_s": AIM_S,
        "counting_s": round(counting_s(), 2),
        **measure(options.points, options.requests, options.repeats),
    }
    tell(results, RESULT, save=options.save)


if __name__ == "__main__":
    main()
