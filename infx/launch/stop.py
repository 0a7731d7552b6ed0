"""Requests to stop: Ctrl-C, TERM, HUP, or `infx cancel` from another shell."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

__all__ = ["CANCEL_FILE", "SIGNALS", "Stop"]

CANCEL_FILE = "cancel"
"""Made in a run's folder by `infx cancel`; works where the driver is on another host, too."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Counts requests to stop while it is entered. The second raises KeyboardInterrupt.

    Where a run goes on without this process, the signals of ``letting_go`` are no requests to stop:
    they set ``detached``, as does the time ``until_s`` (seconds since the epoch) when it has come.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        letting_go: Collection[signal.Signals] = (),
        until_s: float = float("inf"),
    ) -> None:
        self._file = run_dir / CANCEL_FILE
        self._letting_go, self._until_s = letting_go, until_s
        self._signals = 0
        self._let_go = False
        self._before: dict[signal.Signals, Any] = {}

    @property
    def requested(self) -> bool:
        """True from the first request on."""
        return self._signals > 0 or self._file.exists()

    @property
    def detached(self) -> bool:
        """True when the run is to be let go, as it is."""
        return self._let_go or time.time() >= self._until_s

    def __enter__(self) -> Stop:
        for number in SIGNALS:
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

    def forget(self) -> None:
        """Forget what `infx cancel` asked of an earlier drive of the same run."""
        self._file.unlink(missing_ok=True)

    def _count(self, number: int, frame: FrameType | None) -> None:
        if number in self._letting_go:
            self._let_go = True
            return
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt
