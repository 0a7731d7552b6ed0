"""Means and intervals over repeats: Student's on logarithms, with the noise of the line."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.repeats import (
    Shift,
    interval_of,
    mean_of,
    shift_apart,
    shift_intervals,
    shift_paired,
)

positive = st.floats(0.01, 1e6)


@given(st.lists(positive, min_size=1, max_size=5))
def test_the_mean_of_rates_is_the_inverse_of_that_of_times(values: list[float]) -> None:
    assert mean_of([1 / v for v in values]) == pytest.approx(1 / mean_of(values))
    assert min(values) * (1 - 1e-9) <= mean_of(values) <= max(values) * (1 + 1e-9)


def test_means_at_the_edge() -> None:
    assert mean_of([0.0, 2.0]) == 1.0
    assert mean_of([3.0]) == 3.0
    assert mean_of([50.0, 50.0]) == 50.0
    with pytest.raises(ValueError, match="at least one"):
        mean_of([])


def test_an_interval_needs_two_figures_above_zero() -> None:
    assert interval_of([5.0]) is None
    assert interval_of([5.0, 0.0]) is None
    assert interval_of([5.0, 5.0]) == (pytest.approx(5), pytest.approx(5))
    low, high = interval_of([9.0, 10.0, 11.0]) or (0, 0)
    assert low < mean_of([9.0, 10.0, 11.0]) < high
    assert math.sqrt(low * high) == pytest.approx(mean_of([9.0, 10.0, 11.0]))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_interval_of_a_mean_holds_the_truth_as_often_as_it_says(n: int) -> None:
    rng, held = random.Random(n), 0
    for _ in range(1000):
        low, high = interval_of([10 * math.exp(rng.gauss(0, 0.05)) for _ in range(n)]) or (0, 0)
        held += low <= 10 <= high
    assert 0.93 <= held / 1000 <= 0.97


def test_a_single_point_has_students_interval_of_its_ratios() -> None:
    shift = shift_paired([1, 1, 1], [1.1, 1.2, 1.3])
    assert shift is not None
    ((low, high),) = shift_intervals([shift])
    logs = [math.log(ratio) for ratio in (1.1, 1.2, 1.3)]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / 2)
    reach = 4.3027 * spread / math.sqrt(3)
    assert low == pytest.approx(math.exp(mean - reach))
    assert high == pytest.approx(math.exp(mean + reach))


def test_swapped_sides_invert_the_interval() -> None:
    a, b = [10.0, 11.0, 12.0], [8.0, 9.5]
    there, back = shift_apart(a, b), shift_apart(b, a)
    assert there is not None
    assert back is not None
    ((low, high),) = shift_intervals([there])
    ((less, more),) = shift_intervals([back])
    assert (low, high) == (pytest.approx(1 / more), pytest.approx(1 / less))
    assert there.df == 3


@pytest.mark.parametrize("shift", [shift_paired, shift_apart])
def test_a_figure_of_zero_has_no_shift(shift: object) -> None:
    assert callable(shift)
    assert shift([1.0, 0.0], [1.0, 2.0]) is None


def test_without_noise_the_interval_is_the_ratio() -> None:
    shift = shift_apart([2.0, 2.0], [3.0])
    assert shift is not None
    assert shift_intervals([shift]) == [(pytest.approx(1.5), pytest.approx(1.5))]


def held(sds: Sequence[float], repeats: int, *, paired: bool, trials: int = 1000) -> list[float]:
    """Of lines whose points move by a tenth, in what share each interval holds that."""
    rng, found = random.Random(repeats), [0] * len(sds)
    for _ in range(trials):
        shifts = [moved(rng, sd, repeats, paired=paired) for sd in sds]
        for n, (low, high) in enumerate(shift_intervals(shifts)):
            found[n] += low <= 1.1 <= high
    return [count / trials for count in found]


def moved(rng: random.Random, sd: float, repeats: int, *, paired: bool) -> Shift:
    """Two arms; a drift that both share hits pairs alike, and single runs not at all."""
    drift = [rng.gauss(0, 0.5) if paired else 0.0 for _ in range(repeats)]
    a, b = ([by * math.exp(d + rng.gauss(0, sd)) for d in drift] for by in (1.0, 1.1))
    found = shift_paired(a, b) if paired else shift_apart(a, b)
    assert found is not None
    return found


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("points", "repeats"), [(1, 2), (3, 2), (6, 4)])
def test_an_interval_holds_the_truth_as_often_as_it_says(
    points: int, repeats: int, paired: bool
) -> None:
    for share in held([0.03] * points, repeats, paired=paired):
        assert 0.93 <= share <= 0.985


@pytest.mark.parametrize("repeats", [2, 4])
def test_with_a_louder_point_the_line_still_holds_it(repeats: int) -> None:
    """One point four times as loud as the quietest: over all 94 of 100, there 85 at least."""
    shares = held([0.01, 0.02, 0.04], repeats, paired=True)
    assert sum(shares) / 3 >= 0.93
    assert min(shares) >= 0.84


@pytest.mark.parametrize(("repeats", "low", "high"), [(2, 0.72, 0.82), (4, 0.84, 0.92)])
def test_one_loud_point_among_many_quiet_ones_is_held_less_often(
    repeats: int, low: float, high: float
) -> None:
    """What the documentation warns of: repeats of others tell little of that one's noise."""
    shares = held([0.01] * 9 + [0.1], repeats, paired=True)
    assert low < shares[-1] < high
    assert sum(shares) / len(shares) >= 0.93
