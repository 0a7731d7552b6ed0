"""What every test may rely on."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

# No limits in seconds: other work on the machine would decide. `make check` asks for "quick".
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.load_profile("full")

TOGETHER = ("tests/launch/slurm/", "tests/engine/mono/cpu/")
"""Folders for one worker each: scenarios that start all at once, builds that take a minute."""


def pytest_configure() -> None:
    """Have what is compiled kept, and undo what a shell's background or nohup made us ignore.

    Programs under test inherit both.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each program would compile infx again
    sys.dont_write_bytecode = False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Return who deals the slow tests to workers (`--dist loadfile`); None for xdist's own."""
    return Dealer(config, log) if config.getoption("dist") == "loadfile" else None


class Dealer(LoadFileScheduling):
    """Deals whole files, the tests of which share servers, and whole folders; largest first."""

    def _split_scope(self, nodeid: str) -> str:
        folder = next((name for name in TOGETHER if nodeid.startswith(name)), None)
        return folder or str(super()._split_scope(nodeid))
