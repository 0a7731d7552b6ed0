"""What is missing, and the line that installs it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.launch.lab import LabSpec, packages, up
from infx.launch.lab.checks import check_slurm


@pytest.fixture
def bare(monkeypatch):
    """A machine without any of Slurm's programs."""
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)


def test_the_line_names_plugins_too():
    line = packages.apt_line(packages.DAEMONS | packages.ACCOUNTING)
    assert line.startswith("apt-get install --no-install-recommends ")
    assert set(line.split()[3:]) == {
        *("munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"),
        *("slurmdbd", "slurm-wlm-mysql-plugin", "mariadb-server"),
    }


def test_sbin_is_looked_in(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert packages.search_path().split(":") == [str(tmp_path), "/usr/sbin", "/sbin"]


def test_a_lab_on_a_bare_machine_is_refused_before_it_writes(bare):
    folder = Path("/tmp") / f"infx-none-{os.getpid()}"
    with pytest.raises(InfraError) as caught:
        up(LabSpec(folder))
    assert caught.value.code == "slurm-missing"
    assert caught.value.hint == packages.apt_line(packages.DAEMONS)
    assert not folder.exists()


def test_doctor_warns_with_the_line(bare):
    checks = {check.name: check for check in check_slurm()}
    assert {check.level for check in checks.values()} == {"warn"}
    assert packages.apt_line(packages.DAEMONS) in checks["slurm lab"].fix
    assert packages.apt_line(packages.CLIENT) in checks["slurm"].fix


def test_doctor_tells_that_accounting_is_another_matter(monkeypatch):
    absent = {"slurmdbd"}
    found = lambda program, path=None: None if program in absent else f"/x/{program}"  # noqa: E731
    monkeypatch.setattr(shutil, "which", found)
    lab = check_slurm()[1]
    assert lab.level == "pass"
    assert "no slurmdbd" in lab.found
    assert "mariadb-server" in lab.fix
