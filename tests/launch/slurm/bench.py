"""Sweeps of stand-in jobs on a real Slurm: python -m tests.launch.slurm.bench RESULTS.

RESULTS/plan.json is the plan and RESULTS/site.json the site's settings; the first call makes the
run, later ones resume it. The interpreter that jobs are given is a script that runs the stand-in.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infx.config.sites import Cluster, SlurmSite
from infx.domain.errors import InfxError
from infx.domain.findings import Where
from infx.domain.plan import Job, Plan
from infx.launch.lab import MAIN
from infx.launch.runs import create_run, open_store
from infx.launch.slurm import backlog
from infx.launch.slurm.executor import SlurmExecutor
from infx.launch.slurm.watch import Pace
from infx.launch.sweep import Asked, Sweep
from infx.launch.transport import LocalTransport
from infx.plan.saved import read_plan, write_plan
from infx.store import FILE, RunLock, Store, gather
from tests.launch.drive import Quiet
from tests.store.tiny_plans import judge, plan

STAND_IN = Path(__file__).parents[1] / "stand_in_job.py"


def prepare(results: Path, *jobs: Job, **site: Any) -> Plan:
    """Write the plan, the site and the stand-in interpreter into a results folder."""
    results.mkdir(parents=True, exist_ok=True)
    whole = plan(*jobs)
    write_plan(whole, results / "plan.json")
    (results / "site.json").write_text(json.dumps({"partition": MAIN, "gpus": "none"} | site))
    python = results / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STAND_IN} "$4"\n')
    python.chmod(0o755)
    return whole


def cluster(results: Path) -> Cluster:
    site = SlurmSite(**json.loads((results / "site.json").read_text()))
    where = Where("configs/clusters.yaml", 1, 1)
    return Cluster(name="lab", executor="slurm", hardware="cpu", slurm=site, where=where)


def executor(results: Path, conf: str, patience_s: float = 6.0) -> SlurmExecutor:
    return SlurmExecutor(
        cluster(results),
        LocalTransport({"SLURM_CONF": conf}),
        python=str(results / "python"),
        pace=Pace(1.0, 2.0),
        patience_s=patience_s,
    )


def drive(results: Path, conf: str, *, patience_s: float = 6.0, **asked: Any) -> bool:
    """Make or resume the run and drive it; return whether it came to its end."""
    backlog.HELD_BACK_S = (1.0, 4.0)
    whole = read_plan(results / "plan.json")
    run_by = executor(results, conf, patience_s)
    run_by.tick_s = 0.1
    with open_store(results) as store:
        runs = store.runs()
        if not runs:
            run_by.check(whole.jobs)
        new = (
            None
            if runs
            else create_run(store, results, whole, source="tiny", project=results, executor="lab")
        )
        run = new or runs[-1]
        with RunLock(Path(run.folder)):
            gather(store, Path(run.folder), judge)
            return Sweep(store, run, whole, run_by, judge, Quiet(), Asked(**asked)).run()


def states(results: Path) -> list[str]:
    with Store(results / FILE) as store:
        [run] = store.runs()
        return [str(row.status) for row in store.points(run.run_id)]


def outcomes(results: Path) -> list[tuple[int, str, str]]:
    """Return (attempt, outcome, code) of every ended attempt, in order of job and number."""
    with Store(results / FILE) as store:
        [run] = store.runs()
        endings = store.endings(run.run_id)
        return [
            (n, e.outcome, e.code) for group in endings.values() for n, e in enumerate(group, 1)
        ]


def measured(results: Path) -> dict[str, int]:
    """Return how often each point was measured to its end, whoever kept it."""
    found: dict[str, int] = {}
    for log in results.glob("runs/*/measured.txt"):
        for line in log.read_text().split():
            found[line] = found.get(line, 0) + 1
    return found


def main(argv: Sequence[str]) -> int:
    """``argv[1:]`` are settings of Asked: ``canary=1``."""
    asked = {name: int(text) for name, text in (word.split("=") for word in argv[1:])}
    try:
        return 0 if drive(Path(argv[0]), os.environ["SLURM_CONF"], **asked) else 130
    except InfxError as error:
        print(f"{type(error).__name__} {error.code}: {error}", flush=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
