"""The quickstart on this machine and on a four-node Slurm: the same points, all of them ok."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import INFX, as_json, environment, infx
from tests.launch.lab_fixture import running

pytestmark = pytest.mark.proof


def sweep(results: Path, *words: str, **extra: str) -> dict[str, str]:
    """Run it; return the status of each point by its id."""
    command = [*INFX, "sweep", "quickstart", "--results", str(results), *words]
    done = subprocess.run(
        command, env=environment(**extra), capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = as_json(infx("status", "last", "--json", "--results", results))["data"]
    return {point["point_id"]: point["status"]["state"] for point in found["points"]}


def test_the_same_points_on_slurm_as_here(tmp_path: Path) -> None:
    with running() as lab:
        there = sweep(tmp_path / "slurm", "--on", "lab", INFX_LAB=str(lab.folder))
    here = sweep(tmp_path / "local")
    assert there == here
    assert len(here) == 9
    assert set(here.values()) == {"ok"}
