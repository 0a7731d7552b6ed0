"""What every test may rely on."""

from __future__ import annotations

import os
import signal
import sys

from hypothesis import HealthCheck, settings

# No limits in seconds: other work on the machine would decide. `make check` asks for "quick".
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("full"), max_examples=20)
settings.load_profile("full")


def pytest_configure() -> None:
    """Have what is compiled kept, and undo what a shell's background or nohup made us ignore.

    Programs under test inherit both.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each program would compile infx again
    sys.dont_write_bytecode = False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
