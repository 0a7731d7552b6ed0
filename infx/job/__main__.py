"""``python -m infx.job job.json``: what every executor launches.

Exit 0: every point has its point.json, whatever it says. 3: the machine failed (the message and
job-ended's code say how). 143 or 130: stopped by TERM or Ctrl-C, the rest recorded as cancelled.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from infx import frameworks
from infx.domain.errors import ConfigError, InfraError
from infx.domain.serial import decode
from infx.domain.status import Status
from infx.frameworks.base import Framework
from infx.job.accuracy import evaluate
from infx.job.orchestrate import Job
from infx.job.signals import Stopped, stop_on_signals
from infx.job.spec import JobSpec

__all__ = ["main"]


def main(argv: Sequence[str], find: Callable[[str], Framework] = frameworks.get) -> int:
    """Run the job of the file ``argv[0]`` in the folder that holds it; return the exit code."""
    if len(argv) != 1:
        print("usage: python -m infx.job job.json", file=sys.stderr)
        return 2
    file = Path(argv[0]).resolve()
    try:
        spec = decode(file.read_bytes(), JobSpec, source=str(file))
    except (OSError, ConfigError) as error:
        print(f"infx: error: {error}", file=sys.stderr)
        return 2
    stop_on_signals(spec.job.time_limit_s)
    return _run(Job(spec, file.parent, evaluate=evaluate, find=find))


def _run(job: Job) -> int:
    try:
        job.run()
    except Stopped as stop:
        return stop.exit_code
    except InfraError as error:
        print(f"infx: error: {error.code}: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:  # noqa: BLE001  the boundary of the process
        traceback.print_exc()
        job.close(Status("failed", "internal", f"{type(error).__name__}: {error}"))
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
