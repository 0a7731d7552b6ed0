"""What infx doctor says of Slurm on this machine."""

from __future__ import annotations

from infx.launch.lab import packages
from infx.launch.machine import Check

__all__ = ["check_slurm"]


def check_slurm() -> list[Check]:
    """Return a line on Slurm's client and one on what ``infx cluster up`` needs."""
    return [_client(), _lab()]


def _client() -> Check:
    missing = packages.missing(packages.CLIENT)
    if not missing:
        return Check("slurm", "pass", packages.find("sbatch"))
    fix = f"only sweeps on Slurm need it: {packages.apt_line(packages.CLIENT)}"
    return Check("slurm", "warn", f"no {', '.join(missing)}", fix)


def _lab() -> Check:
    missing = packages.missing(packages.DAEMONS)
    if missing:
        fix = f"only infx cluster up needs it: {packages.apt_line(packages.DAEMONS)}"
        return Check("slurm lab", "warn", f"no {', '.join(missing)}", fix)
    lacking = packages.missing(packages.ACCOUNTING)
    found = f"without accounting: no {', '.join(lacking)}" if lacking else "with accounting"
    fix = f"only --accounting needs it: {packages.apt_line(packages.ACCOUNTING)}" if lacking else ""
    return Check("slurm lab", "pass", found, fix)
