"""The null model: no weights, no torch, a letter a step. For measuring the server alone.

``python -m infx.engine --model null --null-rate 20`` gives each request 20 tokens a second (0: as
fast as the steps go) through the same loop, scheduler, pages and server as any model. What remains
of a second is what server and scheduler cost.
"""

from __future__ import annotations

import os
import time

from infx.engine.mono.coverage import Coverage
from infx.engine.scheduler import Result, Step

__all__ = ["NullRunner"]

LETTERS = tuple(b"abcdefghijklmnopqrstuvwxyz")


class NullRunner:
    """A runner whose steps take 1/``rate`` seconds and give the alphabet, letter after letter."""

    def __init__(self, rate: float) -> None:
        self._period_s = 1 / rate if rate else 0.0
        self._due_s = 0.0
        self.pids, self.layers = [os.getpid()], "null"
        self.refusal, self.coverage = None, Coverage()

    def run(self, step: Step) -> Result:
        """Return one token for each work that chooses one, when the step's time has come."""
        self._wait()
        emitted = [
            [LETTERS[(work.start + len(work.tokens)) % len(LETTERS)]] if work.last else []
            for work in step.work
        ]
        return Result(emitted, [[] for _ in emitted], sampled_s=time.monotonic())

    def width(self, step: Step) -> int:
        """Return the rows of ``step``; none is padded."""
        return sum(len(work.tokens) for work in step.work)

    def check(self) -> None:
        """Return: no other process computes."""

    def close(self) -> None:
        """Return: there is nothing to end."""

    def _wait(self) -> None:
        now = time.monotonic()
        if self._due_s > now:
            time.sleep(self._due_s - now)
        self._due_s = max(self._due_s, now) + self._period_s
