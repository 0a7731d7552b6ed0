"""The power of a point's accelerators, logged once a second while it is measured.

The tool's own CSV goes to power.csv in the attempt's folder as it is, after a line that says which
accelerators were asked for and in which zone its times are: nvidia-smi writes local time without
one, so it is run in UTC. `infx.analysis.power_log` reads it.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from infx.domain.point import Arm
from infx.job.process import Program
from infx.job.record import writing

__all__ = ["LOG", "devices", "sampled"]

LOG = "power.csv"

TOOLS = ("nvidia-smi", "amd-smi")

FIRST_S = 5.0
"""The tool may take so long for its first sample; on an H200 it took less than 0.5 s."""

AFTER_S = 3.0
"""Sampled on after the client ended, so that there is a sample after its last request: amd-smi
stamps whole seconds and takes its time for each."""

STOP_S = 2.0
TICK_S = 0.1

_FIELDS = "timestamp,index,power.draw,clocks.sm,clocks_throttle_reasons.active"
"""By the names that drivers before and after 535 know."""


@contextmanager
def sampled(arm: Arm, folder: Path, env: Mapping[str, str]) -> Iterator[Path | None]:
    """Log the power of the accelerators of ``arm`` while what stands inside runs; yield the log in
    ``folder``, to which it is added, or None where there is none to log or no tool that could.

    ``env`` is that of the job, whose PATH is searched. Raises InfraError when no process can be
    made; a tool that fails has its words in the log.
    """
    tool = next((name for name in TOOLS if shutil.which(name, path=env.get("PATH"))), "")
    asked = devices(tool, {**env, **arm.env}, arm.gpus) if tool and arm.accelerators else ()
    if not asked:
        yield None
        return
    log = folder / LOG
    with writing(log), log.open("a", encoding="utf-8") as file:
        file.write(f"# power log: tool={tool} gpus={','.join(asked)} utc-offset-s=0\n")
    begun = log.stat().st_size
    zone = {"TZ": "UTC0", "PYTHONUNBUFFERED": "1"}  # amd-smi is a Python program
    program = Program(_command(tool, asked), env={**env, **zone}, log=log, folder=folder)
    try:
        _wait(program, FIRST_S, log, begun)
        yield log
        _wait(program, AFTER_S)
    finally:
        program.stop(signal.SIGTERM, STOP_S)


def devices(tool: str, env: Mapping[str, str], count: int) -> tuple[str, ...]:
    """Return the first ``count`` accelerators that a server with ``env`` sees, by the names that
    ``tool`` knows them by: an engine takes them in this order. Fewer where it sees fewer.

    HIP_VISIBLE_DEVICES counts among those that ROCR_VISIBLE_DEVICES leaves. Slurm's own list is
    used where no variable hides any.
    """
    hip = _list(env, "HIP_VISIBLE_DEVICES") if tool == "amd-smi" else None
    outer = _list(env, "ROCR_VISIBLE_DEVICES") if tool == "amd-smi" else None
    if hip is not None and outer is not None:
        return tuple(outer[int(n)] for n in hip if n.isdecimal() and int(n) < len(outer))[:count]
    given = (hip, outer, _list(env, "CUDA_VISIBLE_DEVICES"), _list(env, "SLURM_JOB_GPUS"))
    seen = next((names for names in given if names is not None), None)
    return tuple(map(str, range(count)) if seen is None else seen[:count])


def _list(env: Mapping[str, str], name: str) -> list[str] | None:
    if name not in env:
        return None
    return [word for part in env[name].split(",") if (word := part.strip())]


def _command(tool: str, asked: Sequence[str]) -> list[str]:
    if tool == "nvidia-smi":
        return [tool, f"--query-gpu={_FIELDS}", "--format=csv", "-l", "1", "-i", ",".join(asked)]
    return [tool, "metric", "-p", "-g", *asked, "-w", "1", "--csv"]


def _wait(program: Program, seconds: float, log: Path | None = None, begun: int = 0) -> None:
    """Wait ``seconds``, less once the ``log`` has grown from ``begun`` or the tool has ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and program.exit_code() is None:
        if log and log.stat().st_size > begun:
            return
        time.sleep(TICK_S)
