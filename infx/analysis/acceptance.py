"""How far a realised acceptance length may be from the asked one: a share, or chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

from infx.analysis.evidence import Limits
from infx.domain.acceptance import REQUEST_LAWS, Acceptance, distribution, moments
from infx.domain.record import EngineCounters, PointRecord

__all__ = ["Tolerance", "independent_draws", "tolerance"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The limit around an asked length (tokens a step), over ``steps`` that drew for
    themselves, and what sets it: ``4σ of the law`` or ``1 % of it``."""

    slack: float
    share: float
    steps: int
    reason: str

    def __str__(self) -> str:
        return f"limit ±{self.share * 100:.2g} % at {self.steps:,} steps ({self.reason})"


def independent_draws(record: PointRecord) -> int | None:
    """Return how many draws of its law the realised length of a point is at least the mean of.

    Where each request draws for itself, these are its verify steps. Where one draw serves a whole
    batch, the mean weighs each draw by the requests of its step: n steps of at most b requests
    scatter no wider than n/b draws of one weight (Σwᵢ² ≤ b·Σwᵢ). None when the engine does not
    tell.
    """
    counters = record.counters or EngineCounters()
    steps, law = counters.verify_steps, record.point.arm.acceptance.law
    if steps is None or law in REQUEST_LAWS:
        return steps
    widest = max(record.point.conc, math.ceil(counters.peak_running or 0))
    return max(1, steps // widest) if steps else 0


def tolerance(asked: Acceptance, steps: int | None, limits: Limits) -> Tolerance | None:
    """Return max(1 %, 4σ of the mean of ``steps`` draws of the law); None without a length."""
    if asked.length is None:
        return None
    chance = limits.acceptance_sigmas * _sigma(asked, asked.length, steps)
    least = limits.acceptance_share * asked.length
    wide = chance > least
    return Tolerance(
        slack=max(chance, least),
        share=max(chance, least) / asked.length,
        steps=steps or 0,
        reason=f"{limits.acceptance_sigmas:g}σ of the law"
        if wide
        else f"{limits.acceptance_share * 100:g} % of it",
    )


def _sigma(asked: Acceptance, length: float, steps: int | None) -> float:
    """Return σ of the mean of ``steps`` draws; without its curve a law is taken at its widest."""
    if not steps:
        return 0.0
    if asked.law == "from-curve":
        variance = (asked.k / 2) ** 2
    else:
        _, variance = moments(distribution(asked.law, length, asked.k))
    return math.sqrt(variance / steps)
