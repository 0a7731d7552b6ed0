"""pip as infx's own interpreter has it: what a wheel needs, and the wheels for another machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from infx.domain.errors import InfraError
from infx.launch.transport.child import content, running

__all__ = ["Needed", "Target", "build", "download", "pip", "resolve"]

RESOLVE_S = 900.0
DOWNLOAD_S = 3600.0
OLDEST_GLIBC = 5
"""Wheels exist for glibc 2.5 (manylinux1) and newer."""


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that wheels are for: Python ``3.11``, platform ``manylinux_2_28_x86_64``."""

    python: str
    platform: str

    def tags(self) -> tuple[str, ...]:
        """Return every platform tag that runs there: pip takes each of them literally."""
        _, major, newest, machine = self.platform.split("_", 3)
        older = range(int(newest), OLDEST_GLIBC - 1, -1)
        plain = tuple(f"manylinux_{major}_{minor}_{machine}" for minor in older)
        return (*plain, f"manylinux2014_{machine}", f"linux_{machine}")


@dataclass(frozen=True, slots=True)
class Needed:
    """A distribution of the resolution; ``source`` when the index has no wheel of it."""

    name: str
    version: str
    source: bool

    @property
    def pin(self) -> str:
        """``name==version``."""
        return f"{self.name}=={self.version}"


def resolve(wheel: Path, extras: Sequence[str], constraints: Path, work: Path) -> list[Needed]:
    """Return what infx's ``wheel`` needs with ``extras``, pip itself among it.

    Raises InfraError ``bundle-failed``. pip reads requirements with a marker as this interpreter
    and this platform do; the installation over there notices if one is missing.
    """
    wanted = f"infx[{','.join(extras)}] @ {wheel.resolve().as_uri()}"
    report = work / "resolved.json"
    asked = ["install", "--dry-run", "--ignore-installed", "--report", str(report)]
    pip([*asked, "-c", str(constraints), wanted, "pip"], RESOLVE_S, "what infx needs")
    found = json.loads(report.read_text())["install"]
    rows = [(row["metadata"], row["download_info"]["url"]) for row in found]
    every = [Needed(m["name"], m["version"], not url.endswith(".whl")) for m, url in rows]
    return [needed for needed in every if needed.name != "infx"]


def download(needed: Sequence[Needed], target: Target, folder: Path) -> None:
    """Fetch wheels that run on ``target`` into ``folder``. Raises InfraError ``bundle-failed``."""
    pins = folder.with_name("pins.txt")
    pins.write_text("".join(f"{one.pin}\n" for one in needed))
    platforms = [f"--platform={tag}" for tag in target.tags()]
    asked = ["download", "--no-deps", "--only-binary=:all:", f"--python-version={target.python}"]
    what = f"wheels for Python {target.python} on {target.platform}"
    pip([*asked, *platforms, "-d", str(folder), "-r", str(pins)], DOWNLOAD_S, what)


def build(needed: Sequence[Needed], folder: Path) -> None:
    """Build wheels of what exists as source only. Raises InfraError ``bundle-failed``, also for one
    that is compiled: it would fit this machine, not the cluster."""
    for one in needed:
        before = set(folder.iterdir())
        pip(["wheel", "--no-deps", "-w", str(folder), one.pin], RESOLVE_S, one.pin)
        for made in set(folder.iterdir()) - before:
            if not made.name.endswith("-none-any.whl"):
                raise InfraError(
                    "bundle-failed",
                    f"{one.pin} has no wheel and compiles to {made.name}, which fits this machine",
                    hint="put a wheel for the cluster where pip finds it (PIP_FIND_LINKS)",
                )


def pip(arguments: Sequence[str], limit_s: float, what: str) -> None:
    """Run pip. Raises InfraError ``bundle-failed`` with pip's last error about ``what``."""
    if find_spec("pip") is None:
        hint = f"{sys.executable} -m ensurepip, or run infx from an environment with pip"
        raise InfraError("bundle-failed", f"{sys.executable} has no pip", hint=hint)
    argv = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    with running([*argv, *arguments], subprocess.DEVNULL) as child:
        if not child.ended(limit_s):
            hint = "look at the network, then infx cluster prepare again"
            raise InfraError(
                "bundle-failed", f"{what}: pip did not end in {limit_s:.0f} s", hint=hint
            )
        if child.process.returncode:
            raise _refused(what, content(child.err).decode(errors="replace"))


def _refused(what: str, said: str) -> InfraError:
    errors = [line for line in said.splitlines() if line.startswith("ERROR: ")]
    told = " ".join(line.removeprefix("ERROR: ") for line in errors[-2:]) or said.strip()[-300:]
    hint = "correct the pin in constraints.txt or choose another --python, then prepare again"
    return InfraError("bundle-failed", f"{what}: pip says: {told}", hint=hint)
