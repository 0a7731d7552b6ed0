from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.statistics import (
    QUANTILES,
    describe,
    error_bounds,
    percentile,
    standard_error,
    student,
    wilson,
)

numbers = st.floats(-1e6, 1e6)


@given(st.lists(numbers, min_size=1, max_size=60), st.floats(0, 100))
def test_percentile_is_numpys_linear(values: list[float], q: float) -> None:
    expected = float(np.percentile(values, q, method="linear"))
    assert percentile(sorted(values), q) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(st.lists(numbers, min_size=1, max_size=60))
def test_describe_agrees_with_numpy(values: list[float]) -> None:
    seen = describe(values)
    assert seen.n == len(values)
    assert seen.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    assert seen.std == pytest.approx(np.std(values), rel=1e-6, abs=1e-5)
    assert seen.p50 <= seen.p75 <= seen.p90 <= seen.p95 <= seen.p99


def test_equal_values_are_every_percentile() -> None:
    seen = describe([0.1] * 7)
    assert {seen.p50, seen.p75, seen.p90, seen.p95, seen.p99} == {0.1}


FAILED_MS = (0.0, 1.0, 2.5, 40.0, 1e9)
"""What a failed request might have measured, had it ended; the last stands for without end."""


@given(st.lists(st.floats(0, 50), min_size=1, max_size=12), st.integers(1, 3))
def test_bounds_hold_whatever_the_failed_ones_would_have_measured(
    values: list[float], failed: int
) -> None:
    bounds = error_bounds(values, failed)
    for there in range(failed + 1):
        for unknown in product(FAILED_MS, repeat=there):
            whole = sorted([*values, *unknown])
            for q in QUANTILES:
                least, most = getattr(bounds, f"p{q}")
                seen = percentile(whole, q)
                assert least <= seen + 1e-9
                assert most is None or seen <= most + 1e-9


@given(st.lists(st.floats(0, 50), min_size=1, max_size=60), st.integers(0, 60))
def test_bounds_are_reached(values: list[float], failed: int) -> None:
    bounds = error_bounds(values, failed)
    for q in QUANTILES:
        least, most = getattr(bounds, f"p{q}")
        assert least == pytest.approx(np.percentile([*values, *[0.0] * failed], q))
        slow = float(np.percentile([*values, *[1e12] * failed], q))
        assert (most is None) == (slow > 1e9)
        assert most is None or most == pytest.approx(slow)


def test_bounds_of_a_tail_are_open_and_without_failures_shut() -> None:
    ten = [float(n) for n in range(1, 11)]
    assert error_bounds(ten, 1).p90 == (9.0, 10.0)
    assert error_bounds(ten, 1).p95 == (9.5, None)
    assert error_bounds(ten, 0).p99 == (percentile(ten, 99), percentile(ten, 99))
    with pytest.raises(ValueError, match="at least one"):
        error_bounds([], 3)


def test_no_value_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="at least one"):
        describe([])


def test_published_standard_error() -> None:
    # GSM8K, 1,319 questions: the field's reports print ±0.0079 for 0.909.
    assert standard_error(0.909, 1319) == pytest.approx(0.0079, abs=5e-5)
    assert standard_error(0.5, 1) == 0


def test_wilson_of_a_textbook_case() -> None:
    low, high = wilson(0.0, 10)
    assert low == 0
    assert high == pytest.approx(0.2775, abs=1e-4)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_share(n: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, n)) / n
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    assert high - low < 2 / math.sqrt(n)


def test_wilson_covers_the_truth() -> None:
    rng = np.random.default_rng(7)
    hits = rng.binomial(60, 0.1, size=4000)
    intervals = [wilson(k / 60, 60) for k in hits]
    assert 0.93 < np.mean([low <= 0.1 <= high for low, high in intervals]) < 0.98


@pytest.mark.parametrize(
    ("df", "t"), [(1, 12.7062), (10, 2.2281), (11, 2.2010), (30, 2.0423), (1000, 1.9623)]
)
def test_students_t_is_that_of_the_tables(df: int, t: float) -> None:
    assert student(df) == pytest.approx(t, abs=6e-4)
