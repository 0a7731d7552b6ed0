"""Which programs of Slurm are on this machine, and the packages that bring the others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from infx.domain.errors import InfraError

__all__ = [
    "ACCOUNTING",
    "CLIENT",
    "DAEMONS",
    "apt_line",
    "find",
    "missing",
    "search_path",
    "system_tables",
]

CLIENT = {"sbatch": "slurm-client", "squeue": "slurm-client"}
DAEMONS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "scontrol": "slurm-client",
}
ACCOUNTING = {
    "slurmdbd": "slurmdbd",
    "sacctmgr": "slurm-client",
    "mariadbd": "mariadb-server",
}
_PLUGINS = {"slurmctld": "slurm-wlm-basic-plugins", "slurmdbd": "slurm-wlm-mysql-plugin"}
"""Packages without a program of their own: needed by that program, wanted along with it."""


def search_path() -> str:
    """Return PATH with the folders of daemons, which few users have in theirs."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def find(program: str) -> str:
    """Return where ``program`` is, or ``""``."""
    return shutil.which(program, path=search_path()) or ""


def missing(programs: Iterable[str]) -> list[str]:
    """Return those of ``programs`` that are not on this machine."""
    return [program for program in programs if not find(program)]


def apt_line(programs: Iterable[str]) -> str:
    """Return the command that installs ``programs`` on Debian and Ubuntu (32 s for all)."""
    owners = CLIENT | DAEMONS | ACCOUNTING
    names: dict[str, None] = {}
    for program in programs:
        names[owners[program]] = None
        if program in _PLUGINS:
            names[_PLUGINS[program]] = None
    return f"apt-get install --no-install-recommends {' '.join(names)}"


def system_tables() -> Path:
    """Return MariaDB's script that makes its own tables.

    Raises InfraError ``slurm-missing`` when it is not where MariaDB's packages put it.
    """
    paths = [Path(f"/usr/share/{name}/mysql_system_tables.sql") for name in ("mysql", "mariadb")]
    found = next((path for path in paths if path.is_file()), None)
    if found is None:
        message = f"accounting needs {paths[0]}, which this machine lacks"
        raise InfraError("slurm-missing", message, hint=apt_line(["mariadbd"]))
    return found
