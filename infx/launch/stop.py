"""Requests to stop: Ctrl-C, TERM, HUP, or `infx cancel` from another shell."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CANCEL_FILE", "Stop"]

CANCEL_FILE = "cancel"
"""Made in a run's folder by `infx cancel`; works where the driver is on another host, too."""


class Stop:
    """Counts requests to stop while it is entered. The second raises KeyboardInterrupt.

    Where jobs go on without their driver (``detachable``) a hang-up is no request to stop: it only
    sets ``detached``.
    """

    def __init__(self, run_dir: Path, *, detachable: bool = False) -> None:
        self._file = run_dir / CANCEL_FILE
        self._detachable = detachable
        self._signals = 0
        self.detached = False
        self._before: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """True from the first request on."""
        return self._signals > 0 or self._file.exists()

    def __enter__(self) -> Stop:
        self._file.unlink(missing_ok=True)  # of an earlier drive of the same run
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a shell's background
                self._before[number] = signal.signal(number, self._count)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _count(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self._detachable:
            self.detached = True
            return
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt
