"""Chances, bands and means over repeats: exact where they are, and right as often as they say."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis import noise
from infx.analysis.noise import band, coverage, frontier_chances
from infx.analysis.pareto import Direction, Place, frontier
from infx.analysis.repeats import mean_of

UP: tuple[Direction, Direction] = ("max", "max")
places = st.tuples(st.floats(0.1, 100), st.floats(0.1, 100))


def measured(
    rng: random.Random, truth: Sequence[Place], cv: float, repeats: int, together: float = 0.0
) -> list[list[Place]]:
    """Runs of each true place with log-normal noise; ``together`` correlates the axes."""

    def run(x: float, y: float) -> Place:
        first, own = rng.gauss(0, cv), rng.gauss(0, cv)
        second = together * first + math.sqrt(1 - together**2) * own
        return x * math.exp(first), y * math.exp(second)

    return [[run(*place) for _ in range(repeats)] for place in truth]


def roofline(rng: random.Random, n: int = 19) -> list[Place]:
    """A curve of trade-offs, half of its points a little or a good deal below it."""
    found = []
    for _ in range(n):
        at, share = rng.random(), rng.choice([rng.uniform(0.8, 1), rng.uniform(0.97, 1)])
        found.append((math.exp(3 * at) * share, math.exp(3 * (1 - at**1.3)) * share))
    return found


def test_with_one_run_of_each_point_nothing_can_be_told() -> None:
    points = [[(1.0, 5.0)], [(2.0, 4.0)]]
    assert frontier_chances(points, UP) == [None, None]
    assert band(points, UP) is None
    assert coverage(2, [None, None], invalid=1).least is None
    assert coverage(2, [None, None], invalid=1).measured == 3
    assert frontier_chances([], UP) == []


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_figure_without_a_logarithm_tells_no_noise(bad: float) -> None:
    assert frontier_chances([[(1.0, bad), (1.0, 2.0)]], UP) == [None]
    assert band([[(1.0, bad), (1.0, 2.0)]], UP) is None


def test_repeats_without_noise_are_sure() -> None:
    points = [[(1.0, 5.0)] * 2, [(1.0, 4.0)] * 2, [(2.0, 3.0)], [(2.0, 3.0)] * 3]
    assert frontier_chances(points, UP) == [1.0, 0.0, 1.0, 1.0]
    told = coverage(3, frontier_chances(points, UP))
    assert (told.on, told.measured, told.least, told.enough) == (3, 4, 3, False)
    assert (
        band(points, UP)
        == (((pytest.approx(1), pytest.approx(5)), (pytest.approx(2), pytest.approx(3))),) * 2
    )


def test_equal_points_have_even_chances() -> None:
    """Two servers that differ in nothing: with one noise on both axes, either may lead."""
    points = [[(10.0, 10.0), (11.0, 11.0)], [(11.0, 11.0), (10.0, 10.0)]]
    first, second = frontier_chances(points, UP, resamples=4000)
    assert first is not None
    assert second is not None
    assert first + second == pytest.approx(1)
    assert first == pytest.approx(0.5, abs=0.03)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(places, min_size=1, max_size=3), min_size=2, max_size=8))
def test_directions_and_units_do_not_matter(points: list[list[Place]]) -> None:
    inverse = [[(1 / x, 5 * y) for x, y in repeats] for repeats in points]
    here = frontier_chances(points, UP, resamples=50)
    there = frontier_chances(inverse, ("min", "max"), resamples=50)
    assert [told is None for told in here] == [told is None for told in there]
    for one, other in zip(here, there, strict=True):
        assert one is None or one == pytest.approx(other, abs=0.05)  # near-ties round either way


@pytest.mark.parametrize("together", [-0.95, 0.0, 0.95])
@pytest.mark.parametrize("ways", list(product(("max", "min"), repeat=2)))
def test_points_that_are_not_drawn_would_be_on_no_frontier(
    ways: tuple[Direction, Direction], together: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 20 degrees of freedom on most points need not be drawn: drawing them changes nothing."""
    rng = random.Random(2)
    truth = roofline(rng, 30)
    turned = [
        (x if ways[0] == "max" else 1 / x, y if ways[1] == "max" else 1 / y) for x, y in truth
    ]
    points = measured(rng, turned, 0.005, 2, together)
    spread = noise._spread_of(points)
    assert spread
    near = set(noise._near(points, ways, spread))
    assert len(near) < 25
    some = frontier_chances(points, ways, resamples=1000)
    monkeypatch.setattr(noise, "_FAR_DF", 1000)
    every = frontier_chances(points, ways, resamples=1000)
    assert {every[n] for n in range(30) if n not in near} == {0.0}
    for one, other in zip(some, every, strict=True):
        assert one == pytest.approx(other, abs=0.08)


def test_a_point_measured_once_is_judged_by_the_noise_of_its_line() -> None:
    near = [[(10.0, 10.0), (10.3, 10.2)], [(10.05, 10.15)]]
    chances = frontier_chances(near, UP)
    assert all(chance is not None and 0.05 < chance < 0.95 for chance in chances)


def test_few_repeats_make_the_noise_itself_unsure() -> None:
    """One degree of freedom: a lead of 2 standard errors is 85 % sure (Student's t), not 98 %."""
    apart = 0.02
    own = apart / math.sqrt(2)  # the deviation that two runs so far apart show
    lead = 2 * own * math.sqrt(1 / 2 + 1)
    points = [[(1.0, math.exp(lead - apart / 2)), (1.0, math.exp(lead + apart / 2))], [(1.0, 1.0)]]
    first, second = frontier_chances(points, UP, resamples=4000)
    assert first == pytest.approx(0.5 + math.atan(2) / math.pi, abs=0.02)
    assert second == pytest.approx(0.5 - math.atan(2) / math.pi, abs=0.02)


def agreement(
    together: float, repeats: int, cv: float, worlds: int
) -> dict[int, tuple[float, float]]:
    """Of points whose chance lies in each fifth, the mean chance and the share that is truly on."""
    rng, fifths = random.Random(7), dict[int, list[tuple[float, bool]]]()
    for seed in range(worlds):
        truth = roofline(rng)
        on = set(frontier(truth, UP))
        points = measured(rng, truth, cv, repeats, together)
        for n, chance in enumerate(frontier_chances(points, UP, seed=seed, resamples=200)):
            assert chance is not None
            fifths.setdefault(min(int(chance * 5), 4), []).append((chance, n in on))
    return {
        fifth: (sum(c for c, _ in told) / len(told), sum(t for _, t in told) / len(told))
        for fifth, told in fifths.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [2, 3])
@pytest.mark.parametrize("together", [0.0, 0.9])
def test_chances_come_true_as_often_as_they_say(together: float, repeats: int) -> None:
    """Within 0.05 at the ends, where most points are. Between they are cautious: a point is drawn
    around where noise has put it already, so one of the true frontier is put behind more often."""
    found = agreement(together, repeats, 0.02, 80)
    for fifth, (said, true) in found.items():
        low, high = (-0.05, 0.05) if fifth in (0, 4) else (-0.15, 0.35)
        assert low < true - said < high, found


@pytest.mark.slow
def test_own_repeats_alone_would_be_far_too_sure() -> None:
    """Why noise is pooled: a plain bootstrap of two repeats calls points sure that are not on."""
    rng, wrong, sure = random.Random(3), [0, 0], [0, 0]
    for seed in range(60):
        truth = roofline(rng)
        off = set(range(len(truth))) - set(frontier(truth, UP))
        points = measured(rng, truth, 0.03, 2, 0.9)
        for which, chances in enumerate(
            (frontier_chances(points, UP, seed=seed, resamples=200), bootstrapped(points, rng))
        ):
            certain = {
                n for n, chance in enumerate(chances) if chance is not None and chance >= 0.95
            }
            sure[which] += len(certain)
            wrong[which] += len(certain & off)
    assert wrong[0] / sure[0] < 0.01
    assert wrong[1] / sure[1] > 3 * wrong[0] / sure[0]


def bootstrapped(points: Sequence[Sequence[Place]], rng: random.Random) -> list[float]:
    counts = [0] * len(points)
    for _ in range(200):
        drawn = []
        for repeats in points:
            picked = rng.choices(repeats, k=len(repeats))
            drawn.append((mean_of([x for x, _ in picked]), mean_of([y for _, y in picked])))
        for n in frontier(drawn, UP):
            counts[n] += 1
    return [count / 200 for count in counts]


def at(line: Sequence[Place], x: float) -> float:
    """The y of a step line whose corners are members of a frontier on which more is better."""
    return max((y for corner, y in line if corner >= x), default=0.0)


@pytest.mark.slow
def test_a_band_holds_the_true_curve() -> None:
    """95 % at each x, looked at where the true curve has its corners."""
    rng, held, seen = random.Random(5), 0, 0
    for seed in range(60):
        truth = roofline(rng, 12)
        found = band(measured(rng, truth, 0.02, 3), UP, seed=seed, resamples=200)
        assert found
        curve = [truth[n] for n in frontier(truth, UP)]
        for x, _ in curve:
            inside = x * 0.97
            held += (
                at(found[0], inside) * 0.999 <= at(curve, inside) <= at(found[1], inside) * 1.001
            )
            seen += 1
    assert held / seen > 0.9


def test_a_band_runs_below_and_above_the_curve() -> None:
    rng = random.Random(1)
    points = measured(rng, [(1, 9), (2, 7), (4, 4), (7, 1)], 0.03, 3)
    means = [(mean_of([x for x, _ in p]), mean_of([y for _, y in p])) for p in points]
    low, high = band(points, UP) or ((), ())
    for line in (low, high):
        assert [x for x, _ in line] == sorted(x for x, _ in line)
        assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    for x, y in means:
        assert at(low, x * 1.001) < y < at(high, x * 0.999)
    less, more = band([[(1 / x, 1 / y) for x, y in p] for p in points], ("min", "min")) or ((), ())
    assert [(1 / x, 1 / y) for x, y in reversed(less)] == [pytest.approx(p) for p in low]
    assert [(1 / x, 1 / y) for x, y in reversed(more)] == [pytest.approx(p) for p in high]
