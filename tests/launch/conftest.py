"""Fixtures of this folder's tests."""

from tests.launch.lab_fixture import accounting_lab, fresh_folder, lab
from tests.launch.ssh_fixture import ssh_user, sshd

__all__ = ["accounting_lab", "fresh_folder", "lab", "ssh_user", "sshd"]
