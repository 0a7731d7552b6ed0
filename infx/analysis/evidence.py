"""What the validity rules look at, and their limits with the reason for each number."""

from __future__ import annotations

from dataclasses import dataclass

from infx.analysis.export import Asked, Export
from infx.domain.findings import Finding
from infx.domain.record import Measurement, PointRecord

__all__ = ["Evidence", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may be from the ideal and still count.

    ``cancelled_share``: requests cut at the end of a timed run are the long ones, so they bias
    every latency; one in twenty keeps a p90 inside the requests that were seen. ``conc_share``: the
    mean load may miss the asked one by a fifth, which is what a client's own pauses cost on
    requests of 30 ms (measured on two CPU cores). ``acceptance_share``, ``acceptance_sigmas``: a
    realised length may miss by 1 %, or by chance. ``preemptions_a_request``: above one in five,
    prefill is repeated so often that the point measures the cache's size. ``clock_s``: between two
    clocks.
    """

    cancelled_share: float = 0.05
    conc_share: float = 0.2
    acceptance_share: float = 0.01
    acceptance_sigmas: float = 4.0
    mono_coverage: float = 0.9
    preemptions_a_request: float = 0.2
    clock_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One run: its export, what it was asked, its figures or why there are none (``fault``), and
    the record of the point when the run is ours."""

    export: Export
    asked: Asked
    limits: Limits
    measurement: Measurement | None = None
    fault: Finding | None = None
    record: PointRecord | None = None
