"""What made the number: code, packages, machine, commands, environment, the server's own words."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from infx import __version__
from infx.domain.record import Provenance
from infx.job.allocation import Allocation

__all__ = ["collect", "host_facts", "redacted"]

PACKAGES = (
    "aiperf",
    "lm_eval",
    "numpy",
    "tokenizers",
    "torch",
    "transformers",
    "vllm",
    "sglang",
    "xllamacpp",
)

# Variables that can change a measurement. Everything else stays private.
_TELLING = re.compile(
    r"^(AIPERF|CUDA|GOMP|HF|HIP|HSA|INFX|KMP|LD_|MALLOC|MKL|NCCL|NUMBA|NVIDIA|OMP|OPENBLAS|PYTHON|"
    r"PYTORCH|RCCL|ROCM|SGLANG|SLURM|TOKENIZERS|TORCH|TRITON|VIRTUAL_ENV|VLLM)"
)
_SECRET = re.compile(
    r"key|token(?!izer)|secret|passw|pwd|credential|auth|cookie|session|private|signature", re.I
)
_IN_URL = re.compile(r"(\w+://)[^/@\s]*@")
HIDDEN = "[redacted]"


def collect(
    folder: Path,
    *,
    server_argv: Sequence[str] = (),
    server: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    allocated: Allocation | None = None,
) -> Provenance:
    """Return the provenance of numbers made now.

    ``folder`` lies in the project whose git revision counts; ``env`` holds the variables that the
    recipe sets, which are all told (redacted), beside those of this process that can change a
    number; ``allocated`` is what a scheduler gave us.
    """
    revision, dirty = _git(folder)
    told = {name: value for name, value in os.environ.items() if _TELLING.match(name)}
    return Provenance(
        infx_version=__version__,
        git_revision=revision,
        git_dirty=dirty,
        packages={"python": platform.python_version(), **_versions()},
        host={**host_facts(), **(allocated.facts() if allocated else {})},
        server_argv=tuple(server_argv),
        env=redacted({**told, **(env or {})}),
        server=dict(server or {}),
    )


def redacted(env: Mapping[str, str]) -> dict[str, str]:
    """Return ``env`` with the values of secret names hidden, and passwords inside URLs."""
    return {
        name: HIDDEN if _SECRET.search(name) else _IN_URL.sub(rf"\1{HIDDEN}@", value)
        for name, value in sorted(env.items())
    }


def host_facts() -> dict[str, Any]:
    """Return what this machine is: names and counts, memory in bytes, the load average."""
    return {
        "name": platform.node(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average_1min": round(os.getloadavg()[0], 2),
        "gpus": _gpus(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _git(folder: Path) -> tuple[str, bool | None]:
    revision = _said("git", "-C", str(folder), "rev-parse", "HEAD")
    if not revision:
        return "", None
    changes = _said("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return revision, None if changes is None else bool(changes)


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _gpus() -> list[str]:
    fields = "--query-gpu=name,memory.total,driver_version"
    listed = _said("nvidia-smi", fields, "--format=csv,noheader")
    return listed.splitlines() if listed else []


def _said(*command: str) -> str | None:
    """Return a command's output; None when it is not there or fails."""
    if not shutil.which(command[0]):
        return None
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip() if done.returncode == 0 else None
    return None
