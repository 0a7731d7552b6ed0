from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import distribution, draw, moments, uniform

lengths = st.integers(1, 8).flatmap(lambda k: st.tuples(st.just(k), st.floats(1, k + 1)))


@given(lengths, st.sampled_from(["min-variance", "geometric", "batch-min-variance"]))
def test_a_law_is_a_distribution_with_the_asked_mean(case: tuple[int, float], law: str) -> None:
    k, length = case
    probabilities = distribution(law, length, k)  # type: ignore[arg-type]
    assert len(probabilities) == k + 1
    assert sum(probabilities) == pytest.approx(1)
    assert min(probabilities) >= -1e-12
    assert moments(probabilities)[0] == pytest.approx(length, abs=1e-6)


@given(lengths)
def test_min_variance_has_the_least_variance_that_its_mean_allows(case: tuple[int, float]) -> None:
    k, length = case
    fraction = (length - 1) % 1
    variance = moments(distribution("min-variance", length, k))[1]
    assert variance == pytest.approx(fraction * (1 - fraction), abs=1e-9)


def test_published_spread_of_the_two_laws() -> None:
    # reference figures: AL 2.78 at K=3 has sd 0.41 (min-variance) and 1.24 (geometric)
    assert moments(distribution("min-variance", 2.78, 3))[1] ** 0.5 == pytest.approx(0.41, abs=0.01)
    assert moments(distribution("geometric", 2.78, 3))[1] ** 0.5 == pytest.approx(1.24, abs=0.01)


def test_from_curve_takes_unconditional_probabilities() -> None:
    assert distribution("from-curve", 0, 2, [0.8, 0.5]) == pytest.approx([0.2, 0.3, 0.5])


@pytest.mark.parametrize("curve", [[0.5, 0.8], [0.9], [1.1, 0.2]])
def test_from_curve_refuses_what_is_no_curve(curve: list[float]) -> None:
    with pytest.raises(ValueError, match="non-increasing"):
        distribution("from-curve", 0, 2, curve)


@pytest.mark.parametrize("length", [0.99, 4.01])
def test_length_outside_its_range_is_refused(length: float) -> None:
    with pytest.raises(ValueError, match=r"outside \[1, 4\]"):
        distribution("min-variance", length, 3)


def test_draws_depend_on_their_counter_alone_and_follow_the_law() -> None:
    law = distribution("geometric", 2.78, 3)
    counters = list(itertools.product(range(40), range(100)))
    draws = [draw(law, 5, request, emitted) for request, emitted in counters]
    again = [draw(law, 5, request, emitted) for request, emitted in reversed(counters)]
    assert draws == again[::-1]
    mean, variance = moments(law)
    assert statistics.mean(draws) == pytest.approx(mean, abs=4 * (variance / len(draws)) ** 0.5)
    assert uniform(1, 2, 3) != uniform(1, 2, 4) != uniform(2, 2, 4)
