"""Drives a run of stand-in jobs as `infx sweep` does: python drive.py RESULTS, for tests that kill.

The plan is in RESULTS/plan.json; the first call makes the run, later ones resume it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from infx.launch.local import LocalExecutor
from infx.launch.runs import create_run, open_store
from infx.launch.sweep import Asked, Sweep
from infx.plan.saved import read_plan
from infx.store import RunLock, gather
from tests.store.tiny_plans import judge

PROGRAM = (sys.executable, "-S", str(Path(__file__).with_name("stand_in_job.py")))


def measured(results: Path) -> Counter[str]:
    """How often each point was measured to its end, by the records of all attempts: one is there
    or not, whenever its job was killed."""
    paths = results.glob("runs/*/jobs/*/*/points/*/point.json")
    records = [json.loads(path.read_text()) for path in paths]
    ended = [one["point"] for one in records if one["status"]["state"] != "cancelled"]
    return Counter(point["point_id"] for point in ended)


class Quiet:
    def notice(self, sentence: str) -> None:
        print(sentence, flush=True)

    def draw(self, board: object) -> None:
        pass


def drive(results: Path, **how: Any) -> bool:
    """``how`` are settings of Asked."""
    with open_store(results) as store:
        runs = store.runs()
        plan = read_plan(results / "plan.json")
        executor = LocalExecutor(program=PROGRAM)
        executor.tick_s = 0.01
        run = (
            runs[-1]
            if runs
            else create_run(store, results, plan, source="tiny", project=results, executor="local")
        )
        with RunLock(Path(run.folder)):
            gather(store, Path(run.folder), judge)
            return Sweep(store, run, plan, executor, judge, Quiet(), Asked(**how)).run()


if __name__ == "__main__":
    sys.exit(0 if drive(Path(sys.argv[1])) else 130)
