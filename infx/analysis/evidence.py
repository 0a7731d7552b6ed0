"""What the validity rules look at, how they speak, and their limits with the reason for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infx.analysis.asked import Asked
from infx.analysis.export import Export
from infx.domain.findings import Finding, Level
from infx.domain.record import Measurement, PointRecord

__all__ = ["Evidence", "Findings", "Limits", "beyond", "error", "percent", "warning"]

Findings = Iterator[Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a run may be from the ideal and still count.

    ``cancelled_share``: requests cut at the end of a timed run are the long ones, so they bias
    every latency; one in twenty keeps a p90 inside the requests that were seen. ``window_share``: a
    timed run that shows less than nine tenths of its time lost a whole wave of requests, or its
    client. ``conc_share``: the mean load may miss the asked one by a fifth, which is what a
    client's own pauses cost on requests of 30 ms (measured on two CPU cores). ``text_share``: the
    client's count of tokens is not exact, but below half of the server's, text did not arrive.
    ``acceptance_share``, ``acceptance_sigmas``: a realised length may miss by 1 %, or by chance.
    ``preemptions_a_request``: above one in five, prefill is repeated so often that the point
    measures the cache's size. ``prefix_hit_share``: of random prompts only a shared chat template
    repeats, and above half it is not the prompt any more that TTFT measures. ``empty_share``: one
    answer in twenty without text is a server's fault, not a model's. ``cut_share``: when most
    answers hit the token limit, the score is that of the limit. ``clock_s``: between two clocks.
    ``clock_step_s``: a clock that is set by less moves a window of ten seconds by under 1 %.
    ``overflow_share``: the limit of aiperf's own scenario.
    """

    cancelled_share: float = 0.05
    window_share: float = 0.9
    conc_share: float = 0.2
    text_share: float = 0.5
    acceptance_share: float = 0.01
    acceptance_sigmas: float = 4.0
    mono_coverage: float = 0.9
    preemptions_a_request: float = 0.2
    prefix_hit_share: float = 0.5
    empty_share: float = 0.05
    cut_share: float = 0.5
    clock_s: float = 2.0
    clock_step_s: float = 0.1
    overflow_share: float = 0.01


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


def error(code: str, sentence: str) -> Finding:
    """Return a finding that makes the point invalid."""
    return Finding(code, "error", sentence)


def warning(code: str, sentence: str) -> Finding:
    """Return a finding that a reader should know, of a point that still counts."""
    return Finding(code, "warning", sentence)


def beyond(share: float, limit: float) -> Level:
    """Return ``error`` above the limit, ``warning`` up to it."""
    return "error" if share > limit else "warning"


def percent(share: float) -> str:
    """Return a share of 0 … 1 as ``58.3 %``."""
    return f"{share * 100:.3g} %"
