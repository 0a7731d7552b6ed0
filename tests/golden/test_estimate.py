"""The estimator: by hand, against the tables, and its coverage by simulation."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import distribution, moments
from infx.golden.estimate import Batch, estimate, t_quantile

# Two-sided 95 % points of Student's t, as statistical tables print them.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 15: 2.131, 120: 1.980}

# Kinds of prompt: acceptance length at K=3 and verify steps of an answer. Long ones accept less.
KINDS = ((3.4, 20), (2.9, 30), (2.4, 45), (1.9, 60), (1.5, 90))
K = 3
MOMENTS = {length: moments(distribution("geometric", length, K)) for length, _ in KINDS}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_are_those_of_the_tables(freedom: int) -> None:
    assert t_quantile(freedom) == pytest.approx(TABLE[freedom], abs=6e-4)


def test_the_formula_by_hand() -> None:
    found = estimate([Batch(10, 10), Batch(30, 20), Batch(20, 10)])
    # R = 60/40 = 1.5; residuals -5, 0, 5; s² = 50/2; SE = sqrt(3·25)/40
    assert found.length == 2.5
    assert found.half_width == pytest.approx(4.3027 * math.sqrt(75) / 40, rel=1e-4)
    assert (found.steps, found.batches) == (40, 3)


def test_one_batch_tells_no_spread_and_none_no_length() -> None:
    assert estimate([Batch(5, 10)]).half_width is None
    with pytest.raises(ValueError, match="no verify step"):
        estimate([Batch(0, 0), Batch(0, 0)])


def test_a_long_answer_counts_for_more() -> None:
    assert estimate([Batch(0, 90), Batch(10, 10)]).length == pytest.approx(1.1)


batches = st.lists(
    st.integers(1, 400).flatmap(
        lambda steps: st.integers(0, 3 * steps).map(lambda accepted: Batch(accepted, steps))
    ),
    min_size=2,
    max_size=30,
)


@given(batches, st.randoms())
def test_order_does_not_matter_and_the_length_is_possible(found: list[Batch], rng: Random) -> None:
    shuffled = found.copy()
    rng.shuffle(shuffled)
    a, b = estimate(found), estimate(shuffled)
    assert a.length == b.length
    assert a.half_width == pytest.approx(b.half_width)
    assert 1 <= a.length <= 4


@given(batches)
def test_the_same_batches_twice_narrow_the_interval(found: list[Batch]) -> None:
    once, twice = estimate(found), estimate(found * 2)
    assert twice.length == pytest.approx(once.length)
    assert once.half_width is not None
    assert twice.half_width is not None
    assert twice.half_width <= once.half_width + 1e-12


def one_answer(rng: Random) -> Batch:
    length, steps = rng.choice(KINDS)
    mean, variance = MOMENTS[length]
    return Batch(rng.gauss((mean - 1) * steps, math.sqrt(variance * steps)), steps)


def one_batch(rng: Random, prompts: int) -> Batch:
    answers = [one_answer(rng) for _ in range(prompts)]
    return Batch(sum(a.accepted for a in answers), sum(a.steps for a in answers))


@pytest.mark.parametrize(("count", "prompts"), [(16, 4), (8, 8), (64, 1)])
def test_the_interval_covers_the_truth_in_95_of_100(count: int, prompts: int) -> None:
    steps = sum(steps for _, steps in KINDS)
    truth = sum(length * steps for length, steps in KINDS) / steps
    rng, trials, covered = Random(11), 2000, 0
    for _ in range(trials):
        found = estimate([one_batch(rng, prompts) for _ in range(count)])
        assert found.half_width is not None
        covered += abs(found.length - truth) <= found.half_width
    # 3 standard errors of a share of 0.95 over 2000 trials, and as much for the ratio's own bias
    assert 0.935 <= covered / trials <= 0.965


def test_steps_are_no_sampling_unit() -> None:
    """The interval that takes every step as independent is too narrow: it covers far less."""
    steps = sum(steps for _, steps in KINDS)
    truth = sum(length * steps for length, steps in KINDS) / steps
    rng, trials, covered = Random(11), 300, 0
    for _ in range(trials):
        found = estimate([one_batch(rng, 4) for _ in range(16)])
        variance = moments(distribution("geometric", found.length, K))[1]
        covered += abs(found.length - truth) <= 1.96 * math.sqrt(variance / found.steps)
    assert covered / trials < 0.8
