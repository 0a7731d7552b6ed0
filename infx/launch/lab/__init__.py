"""A real Slurm on this machine, for trying sweeps and for tests: up in half a second."""

from infx.launch.lab.conf import ACCOUNT, LOW, MAIN, LabSpec, Place
from infx.launch.lab.folders import lab_folder, slurm_conf
from infx.launch.lab.lab import LabState, add_qos, add_user, down, existing, status, up

__all__ = [
    "ACCOUNT",
    "LOW",
    "MAIN",
    "LabSpec",
    "LabState",
    "Place",
    "add_qos",
    "add_user",
    "down",
    "existing",
    "lab_folder",
    "slurm_conf",
    "status",
    "up",
]
