"""Intervals on ratios: exact where nothing changed, symmetric, and right as often as they say."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis.intervals import RESAMPLES, percentile_of, rate_of, request_interval

FIGURES = {"p50": percentile_of(50), "p90": percentile_of(90), "rate": rate_of}
VALUES = st.lists(st.floats(0.1, 1e4), min_size=10, max_size=40)

few = settings(max_examples=20, deadline=None)


def columns(name: str, values: Sequence[float]) -> list[Sequence[float]]:
    """One column for a percentile, tokens and time for a rate."""
    return [[32.0] * len(values), values] if name == "rate" else [values]


def interval(
    name: str, a: Sequence[float], b: Sequence[float], *, paired: bool
) -> tuple[float, float]:
    found = request_interval(columns(name, a), columns(name, b), FIGURES[name], paired=paired)
    assert found
    return found


@few
@given(values=VALUES, name=st.sampled_from(sorted(FIGURES)))
def test_the_same_requests_give_exactly_one(values: list[float], name: str) -> None:
    assert interval(name, values, values, paired=True) == (1.0, 1.0)


@few
@given(values=VALUES, factor=st.floats(0.2, 5), name=st.sampled_from(sorted(FIGURES)))
def test_a_scaled_side_gives_the_factor(values: list[float], factor: float, name: str) -> None:
    scaled = [value * factor for value in values]
    expected = 1 / factor if name == "rate" else factor
    low, high = interval(name, values, scaled, paired=True)
    assert low == pytest.approx(expected)
    assert high == pytest.approx(expected)
    low, high = interval(name, values, scaled, paired=False)
    assert low <= expected * (1 + 1e-9)
    assert high >= expected * (1 - 1e-9)


@few
@given(rows=st.lists(st.tuples(st.floats(1, 100), st.floats(1, 100)), min_size=10, max_size=40))
def test_swapped_arms_invert_the_interval(rows: list[tuple[float, float]]) -> None:
    a, b = zip(*rows, strict=True)
    low, high = interval("p90", a, b, paired=True)
    back = interval("p90", b, a, paired=True)
    assert back == (pytest.approx(1 / high), pytest.approx(1 / low))


def test_pairing_takes_out_what_both_sides_share() -> None:
    rng = random.Random(1)
    a = [math.exp(rng.gauss(0, 1)) for _ in range(50)]
    b = [value * rng.uniform(0.79, 0.81) for value in a]
    low, high = interval("rate", a, b, paired=True)
    apart = interval("rate", a, b, paired=False)
    assert 1 / 0.81 < low < 1.25 < high < 1 / 0.79
    assert math.log(apart[1] / apart[0]) > 5 * math.log(high / low)


def test_a_figure_of_zero_has_no_ratio() -> None:
    zeros = [0.0] * 8 + [1.0] * 4
    assert request_interval([zeros], [[1.0] * 12], percentile_of(50), paired=False) is None


def test_values_that_are_not_there_are_left_out() -> None:
    a, b = [1.0, 2.0, 3.0, math.nan] * 5, [2.0, 4.0, 6.0, math.nan] * 5
    assert interval("p50", a, b, paired=True) == (pytest.approx(2), pytest.approx(2))


def test_many_requests_are_drawn_in_blocks() -> None:
    """More numbers than a block holds: all resamples are drawn all the same."""
    values = [float(n % 97 + 1) for n in range(2000)]
    assert RESAMPLES * len(values) > 1 << 20
    assert interval("rate", values, values, paired=True) == (1.0, 1.0)


def drawn(rng: random.Random, n: int, *, paired: bool) -> tuple[list[float], list[float]]:
    """Log-normal latencies of two arms, B 20 % faster; paired ones share their prompts' part."""
    shared = [rng.gauss(0, 0.3) if paired else 0.0 for _ in range(n)]
    a = [math.exp(part + rng.gauss(0, 0.25)) for part in shared]
    if not paired:
        shared = [0.0] * n
    return a, [0.8 * math.exp(part + rng.gauss(0, 0.25)) for part in shared]


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("name", "n"), [("rate", 12), ("rate", 60), ("p50", 24), ("p90", 60)])
def test_an_interval_holds_the_truth_as_often_as_it_says(name: str, n: int, paired: bool) -> None:
    """95 %: at least 92 of 100 hold it. An order statistic of few requests is coarse, so its
    interval may be wider than needed, which costs power and no truth."""
    rng, held, trials = random.Random(n), 0, 200
    truth = 1 / 0.8 if name == "rate" else 0.8
    for _ in range(trials):
        low, high = interval(name, *drawn(rng, n, paired=paired), paired=paired)
        held += low <= truth <= high
    assert held / trials >= 0.92
    assert name != "rate" or held / trials <= 0.99
