"""Limits in seconds are meant for a quiet machine; others are as slow as they are at the moment."""

from __future__ import annotations

import time
from collections.abc import Callable

COUNTED_S = 0.004
"""CPU of counting to a hundred thousand on the quiet machine."""


def quiet_s(work: Callable[[], object], rounds: int = 5) -> float:
    """CPU seconds that ``work`` takes on the quiet machine, by the least of ``rounds``.

    Never more than what it took here: a machine faster than the quiet one proves as much.
    """
    took_s = min(cpu_s(work) for _ in range(rounds))
    counted_s = min(cpu_s(lambda: sum(1 for _ in range(100_000))) for _ in range(10))
    return took_s / max(1.0, counted_s / COUNTED_S)


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds that this process spent in one call of ``work``."""
    begun_s = time.process_time()
    work()
    return time.process_time() - begun_s
