"""How far a realised acceptance length may be off, by Monte Carlo of our own draws."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from infx.analysis.acceptance import independent_draws, tolerance
from infx.analysis.evidence import Limits
from infx.domain.acceptance import Acceptance, Law, distribution, draw
from infx.domain.record import EngineCounters, PointRecord
from infx.domain.status import Status
from tests.report.sample_runs import MINI, point, record

K, LENGTH, CONC = 3, 2.5, 16
RUNS, STEPS = 120, 60
BATCH: Law = "batch-min-variance"
LIMITS = Limits()


def told(law: Law, steps: int | None, peak: float | None = None, conc: int = CONC) -> PointRecord:
    made = record(point(MINI, conc, 4), Status("measured"))
    arm = replace(made.point.arm, acceptance=Acceptance("synthetic", LENGTH, law, k=K))
    counters = EngineCounters(verify_steps=steps, peak_running=peak)
    return replace(made, point=replace(made.point, conc=conc, arm=arm), counters=counters)


@pytest.mark.parametrize(
    ("law", "steps", "peak", "draws"),
    [
        ("min-variance", 960, None, 960),
        (BATCH, 960, None, 60),
        (BATCH, 960, 32.0, 30),  # sub-agents: more requests than lanes
        (BATCH, 3, None, 1),
        (BATCH, 0, None, 0),
        (BATCH, None, None, None),
    ],
)
def test_draws_of_a_law(law: Law, steps: int | None, peak: float | None, draws: int | None) -> None:
    assert independent_draws(told(law, steps, peak)) == draws


def run(seed: int, law: Law) -> tuple[float, int]:
    """Return the realised length and the verify steps of a run whose batches fill and drain."""
    probabilities, rng = distribution(law, LENGTH, K), random.Random(seed)
    tokens = verified = 0
    for step in range(STEPS):
        size = rng.randint(1, CONC)
        drawing = range(1 if law == BATCH else size)
        drawn = [draw(probabilities, seed, request, step) for request in drawing]
        tokens += sum(drawn) * size // len(drawn)
        verified += size
    return tokens / verified, verified


def beyond(law: Law, judged: Law) -> int:
    """Return how many runs of ``law`` are off by more than 4σ of ``judged``."""
    found = 0
    for seed in range(RUNS):
        length, verified = run(seed, law)
        asked = Acceptance("synthetic", LENGTH, judged, k=K)
        limit = tolerance(asked, independent_draws(told(judged, verified)), LIMITS)
        assert limit is not None
        found += abs(length - LENGTH) > limit.slack
    return found


def test_a_batch_law_is_judged_by_its_own_draws() -> None:
    assert beyond(BATCH, BATCH) == 0
    assert beyond("min-variance", "min-variance") == 0


def test_draws_that_a_batch_shares_are_not_those_of_its_requests() -> None:
    """Judged as if every request had drawn, honest runs would be thrown away."""
    assert beyond(BATCH, "min-variance") > RUNS // 10


def test_the_mean_of_a_batch_law_is_the_asked_length() -> None:
    mean = sum(run(seed, BATCH)[0] for seed in range(RUNS)) / RUNS
    assert mean == pytest.approx(LENGTH, abs=4 * 0.5 / (RUNS * STEPS / 2) ** 0.5)


def test_one_per_cent_is_the_least_limit() -> None:
    asked = Acceptance("synthetic", LENGTH, BATCH, k=K)
    limit = tolerance(asked, 10**7, LIMITS)
    assert limit is not None
    assert limit.slack == pytest.approx(0.025)
