"""Fixtures of this folder's tests."""

from tests.launch.lab_fixture import accounting_lab, fresh_folder, lab
from tests.launch.slurm.scenarios import scenario

__all__ = ["accounting_lab", "fresh_folder", "lab", "scenario"]
