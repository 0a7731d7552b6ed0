"""``python -m infx.job job.json``: what every executor launches.

Exit 0: every point has its point.json, whatever it says. 3: the machine failed (the message and
job-ended's code say how). 143 or 130: stopped by TERM or Ctrl-C, the rest recorded as cancelled.
In all of these result.json is written last. 75: the attempt is somebody else's, nothing was done.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infx import frameworks
from infx.domain.errors import ConfigError, InfraError
from infx.domain.serial import decode
from infx.domain.status import Status
from infx.frameworks.base import Framework
from infx.job import claim
from infx.job.accuracy import evaluate
from infx.job.orchestrate import Job
from infx.job.record import writing
from infx.job.result import Result, evidence, write_result
from infx.job.signals import Stopped, deaf, stop_on_signals, uninterrupted
from infx.job.spec import JobSpec

__all__ = ["main"]


@dataclass(frozen=True, slots=True)
class _End:
    """How the job ended: the result's status, and the exit code."""

    status: str
    sentence: str
    exit_code: int


def main(argv: Sequence[str], find: Callable[[str], Framework] = frameworks.get) -> int:
    """Run the job of the file ``argv[0]`` in the folder that holds it; return the exit code."""
    if len(argv) != 1:
        print("usage: python -m infx.job job.json", file=sys.stderr)
        return 2
    file, started_s = Path(argv[0]).resolve(), time.time()
    try:
        spec = decode(file.read_bytes(), JobSpec, source=str(file))
    except (OSError, ConfigError) as error:
        print(f"infx: error: {error}", file=sys.stderr)
        return 2
    job = Job(spec, file.parent, evaluate=evaluate, find=find)
    stop_on_signals(spec.job.time_limit_s)
    try:
        return _run(job, spec, file.parent, started_s)
    except InfraError as error:
        return _infra(error).exit_code


def _run(job: Job, spec: JobSpec, folder: Path, started_s: float) -> int:
    """Run the job and write its result, whatever happens: after the first signal none counts."""
    mine = _claim(job, started_s)
    try:
        with uninterrupted():
            taken = claim.take(folder, mine)
        if not taken:
            print(f"infx: nothing was run: {claim.holder(folder)}", file=sys.stderr)
            return claim.TAKEN
        end = _outcome(job)
        deaf()
    except Stopped as stop:
        if claim.holder(folder) != mine:
            return stop.exit_code
        job.close(stop.status)
        end = _End(str(stop.status), stop.status.sentence, stop.exit_code)
    with writing(folder):
        manifest = evidence(folder)
    result = Result(
        run_id=spec.run_id,
        job_id=spec.job.job_id,
        attempt=spec.attempt,
        unique_name=spec.unique_name,
        scheduler_id=job.allocation.scheduler_id,
        node=job.allocation.node,
        started_s=started_s,
        ended_s=time.time(),
        status=end.status,
        sentence=end.sentence,
        points=dict(job.statuses),
        manifest=manifest,
    )
    write_result(result, folder)
    return end.exit_code


def _claim(job: Job, started_s: float) -> claim.Claim:
    return claim.Claim(
        by="job",
        scheduler_id=job.allocation.scheduler_id,
        host=platform.node(),
        pid=os.getpid(),
        started_s=started_s,
    )


def _outcome(job: Job) -> _End:
    try:
        job.run()
    except InfraError as error:
        return _infra(error)
    except Exception as error:  # noqa: BLE001  the boundary of the process
        deaf()
        traceback.print_exc()
        status = Status("failed", "internal", f"{type(error).__name__}: {error}")
        with suppress(InfraError):
            job.close(status)
        return _End(str(status), status.sentence, 3)
    return _End("ended", "", 0)


def _infra(error: InfraError) -> _End:
    print(f"infx: error: {error.code}: {error}", file=sys.stderr)
    return _End(f"failed:{error.code}", str(error), error.exit_code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
