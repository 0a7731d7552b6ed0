"""What every test may rely on."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Undo what a shell's background or nohup made us ignore: programs under test inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
