"""Slurm's own time limit ends a job that does not listen: longer than a test may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.lab_fixture import running
from tests.launch.slurm import bench
from tests.launch.slurm.driven import driven
from tests.store.tiny_plans import job

pytestmark = pytest.mark.proof


def test_slurms_time_limit(tmp_path: Path) -> None:
    """Not tried again, but under a larger limit that was asked for."""
    deaf = job(0, behave="deaf")
    with running() as lab, driven(lab, tmp_path / "r", deaf, directives=("--time=1",)) as sweep:
        sweep.finish(limit_s=300)
        sweep.check(*["failed:time-limit"] * 2)
        sweep.finish("retry_failed=1")
        assert bench.outcomes(tmp_path / "r") == [(1, "timeout", "time-limit")]
