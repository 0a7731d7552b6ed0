"""What each step of a training run does: a pure function of its number.

    0 %        short sequences (a third of the length), full attention in every layer
    30 %       the indexer's blocks only: numbers are copied only once full attention has learnt it
    50 %       whole length
    65 %       experts rounded to MXFP4; every second sequence sees its caches as MXFP4 holds them

The learning rate warms up, stays, and falls linearly to 2 % from 45 % of the run on.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Phase", "Schedule", "falling"]

SPARSE_FROM, WHOLE_FROM, ROUNDED_FROM, DECAY_FROM = 0.3, 0.5, 0.65, 0.45
SHORTER = 3
WARM_UP_STEPS = 100


@dataclass(frozen=True, slots=True)
class Phase:
    """Sequences of a step: ``batch`` of ``length`` tokens, and how the model sees them."""

    length: int
    batch: int
    sparse: bool
    rounded: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run of ``steps`` steps over ``batch`` sequences of ``length`` tokens each."""

    steps: int
    length: int
    batch: int

    def phase(self, step: int) -> Phase:
        """Return what step ``step`` (from 0) trains."""
        done = step / self.steps
        whole = done >= WHOLE_FROM
        return Phase(
            length=self.length if whole else self.length // SHORTER,
            batch=self.batch if whole else self.batch * SHORTER,
            sparse=done >= SPARSE_FROM,
            rounded=done >= ROUNDED_FROM,
        )

    def first_conversation(self, step: int) -> int:
        """Return how many conversations the steps before ``step`` used."""
        short = min(step, sum(1 for s in range(self.steps) if s / self.steps < WHOLE_FROM))
        return self.batch * (SHORTER * short + step - short)

    def rate(self, step: int) -> float:
        """Return the learning rate of ``step`` as a share of the highest."""
        return falling(step, self.steps, WARM_UP_STEPS, DECAY_FROM)


def falling(step: int, steps: int, warm_up: int, decay_from: float) -> float:
    """Return a rate that rises over ``warm_up`` steps (a tenth of the run at most) to 1 and falls
    linearly to 0.02 from the share ``decay_from`` of the run on."""
    rise = (step + 1) / max(1, min(warm_up, steps // 10))
    fall = 0.02 + 0.98 * (1 - step / steps) / (1 - decay_from)
    return min(1.0, rise) * min(1.0, fall)
