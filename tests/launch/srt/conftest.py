"""Fixtures of this folder's tests."""

from tests.launch.lab_fixture import lab
from tests.launch.slurm.scenarios import scenario

__all__ = ["lab", "scenario"]
