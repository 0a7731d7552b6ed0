"""Drives the plan in RESULTS with the pace of a real site: python thousand.py RESULTS SLURM_CONF.

The last line is one JSON object: ``submits`` (jobs, seconds) of each submit, the seconds that as
many folders and files took just before, when the scheduler was asked (monotonic seconds), the peak
memory in MB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from infx.launch.slurm.executor import SlurmExecutor
from infx.launch.slurm.watch import Pace
from infx.launch.sweep import Sweep
from infx.launch.transport import LocalTransport
from tests.launch.slurm import bench


class Timed(Sweep):
    """A sweep that notes what a submit costs."""

    submits: list[tuple[int, float]] = []  # noqa: RUF012
    files_s = 0.0

    def _submit(self) -> None:
        if not self._open and not self.submits:
            Timed.files_s = make_files(self._dir / "like", len(self._waiting.jobs))
        before, begun_s = len(self._open), time.monotonic()
        super()._submit()
        if launched := len(self._open) - before:
            self.submits.append((launched, time.monotonic() - begun_s))


def make_files(folder: Path, count: int) -> float:
    """Return the seconds that it takes to make what a submit makes for each job."""
    text, begun_s = "x" * 3000, time.monotonic()
    folder.mkdir()
    for n in range(count):
        (folder / str(n) / "a1").mkdir(parents=True)
        (folder / str(n) / "a1" / "job.json").write_text(text)
    return time.monotonic() - begun_s


class Counted(LocalTransport):
    """A transport that notes when the queue is asked for."""

    asked_s: list[float] = []  # noqa: RUF012

    def run(self, script: str, *, limit_s: float = 30.0):  # type: ignore[no-untyped-def]
        if "squeue" in script or "sacct" in script:
            self.asked_s.append(time.monotonic())
        return super().run(script, limit_s=limit_s)


def executor(results: Path, conf: str, patience_s: float) -> SlurmExecutor:
    transport, python = Counted({"SLURM_CONF": conf}), str(results / "python")
    return SlurmExecutor(bench.cluster(results), transport, python=python, pace=Pace())


def main() -> None:
    results, conf = Path(sys.argv[1]), sys.argv[2]
    bench.Sweep, bench.executor = Timed, executor  # type: ignore[attr-defined,assignment]
    assert bench.drive(results, conf)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = {"submits": Timed.submits, "files_s": Timed.files_s, "asked_s": Counted.asked_s}
    print(json.dumps(told | {"peak_mb": peak_mb}))


if __name__ == "__main__":
    main()
