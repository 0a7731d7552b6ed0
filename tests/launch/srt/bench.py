"""Sweeps of the stub srtctl on a real Slurm: python -m tests.launch.srt.bench RESULTS.

RESULTS/plan.json is the plan, RESULTS/behave what the stub does and RESULTS/site.json the cluster's
section; the first call makes the run, later ones resume it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from infx.analysis.validity import judge
from infx.config.sites import Cluster, SrtSite
from infx.domain.errors import InfxError
from infx.domain.findings import Where
from infx.domain.identity import content_id
from infx.domain.plan import Job, Plan
from infx.domain.point import FixedLengths, Model, Point
from infx.domain.record import PointRecord
from infx.launch.runs import create_run, open_store
from infx.launch.slurm.watch import Pace
from infx.launch.srt import executor as executors
from infx.launch.srt.executor import SrtExecutor
from infx.launch.sweep import Asked, Sweep
from infx.launch.transport import LocalTransport, Transport
from infx.plan.saved import read_plan, write_plan
from infx.store import FILE, RunLock, Store, gather
from tests.launch.drive import Quiet
from tests.store import tiny_plans

ROOT = Path(__file__).parents[3]
STUB = Path(__file__).with_name("stub_srtctl.py")


def job(number: int = 0, points: int = 2, framework: str = "vllm", **arm: Any) -> Job:
    """A job of two points on one GPU, as the srt runner can express it."""
    model = Model(name="tiny", prefix="tiny", precision="bf16", weights="hf:me/tiny")
    image = {"image": "vllm/vllm-openai:v0.24.0", "image_digest": "sha256:" + "a" * 64}
    base = tiny_plans.arm(number)
    parts: dict[str, Any] = {"framework": framework, "model": model, "options": {}, **image, **arm}
    server = replace(base, **parts)
    measured = tuple(_point(server, conc) for conc in range(1, points + 1))
    identity = content_id([point.point_id for point in measured])
    name = f"tiny.s{number + 1}"
    return Job(
        job_id=identity, name=name, arm=server, points=measured, cluster="far", time_limit_s=600
    )


def _point(server: Any, conc: int) -> Point:
    load = FixedLengths(isl=16, osl=8, requests=4 * conc)
    return replace(tiny_plans.point(server, conc), workload=load)


def cluster(**site: Any) -> Cluster:
    """The cluster ``far``; ``site`` are fields of its section."""
    where = Where("configs/clusters.yaml", 3, 1)
    return Cluster(
        name="far",
        executor="srt",
        hardware="h200",
        gpus_per_node=8,
        srt=SrtSite(**site),
        where=where,
    )


def prepare(results: Path, *jobs: Job, behave: str = "ok", **site: Any) -> Plan:
    """Write the plan, the site, and a program srtctl that plays ``behave``."""
    results.mkdir(parents=True, exist_ok=True)
    whole = tiny_plans.plan(*(jobs or (job(0), job(1))))
    write_plan(whole, results / "plan.json")
    (results / "behave").write_text(behave)
    program = results / "srtctl"
    program.write_text(
        f"#!/bin/sh\nexport STUB_SRT={results}/behave PYTHONPATH={ROOT}\n"
        f'exec {sys.executable} {STUB} "$@"\n'
    )
    program.chmod(0o755)
    (results / "site.json").write_text(json.dumps({"srtctl": str(program)} | site))
    return whole


def executor(results: Path, transport: Transport, patience_s: float = 3.0) -> SrtExecutor:
    site = json.loads((results / "site.json").read_text())
    made = SrtExecutor(cluster(**site), transport, pace=Pace(0.3, 1.0), patience_s=patience_s)
    made.tick_s = 0.1
    return made


def drive(results: Path, transport: Transport, **asked: Any) -> bool:
    """Make or resume the run and drive it; return whether it came to its end."""
    executors.HELD_BACK_S = (1.0, 4.0)
    whole, run_by = read_plan(results / "plan.json"), executor(results, transport)
    with open_store(results) as store:
        runs = store.runs()
        if not runs:
            run_by.check(whole.jobs)
        new = (
            None
            if runs
            else create_run(store, results, whole, source="tiny", project=results, executor="far")
        )
        run = new or runs[-1]
        with RunLock(Path(run.folder)):
            gather(store, Path(run.folder), judge)
            return Sweep(store, run, whole, run_by, judge, Quiet(), Asked(**asked)).run()


def records(results: Path) -> list[PointRecord]:
    """The run's records as they stand, in order of point."""
    with Store(results / FILE) as store:
        [run] = store.runs()
        return store.records(run.run_id)


def states(results: Path) -> list[str]:
    with Store(results / FILE) as store:
        [run] = store.runs()
        return [str(row.status) for row in store.points(run.run_id)]


def measured(results: Path) -> Counter[str]:
    """How often each point's label was measured, whoever kept it."""
    file = results / "measured.txt"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def main(argv: Sequence[str]) -> int:
    asked = {name: int(text) for name, text in (word.split("=") for word in argv[1:])}
    transport = LocalTransport({"SLURM_CONF": os.environ["SLURM_CONF"]})
    try:
        return 0 if drive(Path(argv[0]), transport, **asked) else 130
    except InfxError as error:
        print(f"{type(error).__name__} {error.code}: {error}", flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
