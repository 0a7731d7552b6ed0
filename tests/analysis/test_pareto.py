from __future__ import annotations

import math
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.pareto import Direction, dominators, frontier, hypervolume

directions = st.lists(st.sampled_from(["max", "min"]), min_size=1, max_size=4)
UP: tuple[Direction, Direction] = ("max", "max")
small = st.integers(0, 6).map(float)


def brute(points: Sequence[Sequence[float]], ways: Sequence[Direction]) -> list[int]:
    """The definition, word by word."""

    def better(a: float, b: float, way: Direction) -> bool:
        return a > b if way == "max" else a < b

    def dominates(one: Sequence[float], other: Sequence[float]) -> bool:
        triples = list(zip(one, other, ways, strict=True))
        return not any(better(b, a, w) for a, b, w in triples) and any(
            better(a, b, w) for a, b, w in triples
        )

    return [i for i, p in enumerate(points) if not any(dominates(q, p) for q in points)]


@given(st.data(), directions)
def test_is_the_definition(data: st.DataObject, ways: list[Direction]) -> None:
    points = data.draw(st.lists(st.tuples(*[small for _ in ways]), max_size=25))
    assert frontier(points, ways) == brute(points, ways)


@given(st.lists(st.tuples(small, small), min_size=1, max_size=20), st.randoms())
def test_order_does_not_matter(points: list[tuple[float, float]], random: object) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    ways: tuple[Direction, Direction] = ("max", "max")
    kept = sorted(points[i] for i in frontier(points, ways))
    assert kept == sorted(shuffled[i] for i in frontier(shuffled, ways))


@given(st.lists(st.tuples(small, small), min_size=1, max_size=20))
def test_a_duplicate_shares_the_fate_of_its_twin(points: list[tuple[float, float]]) -> None:
    ways: tuple[Direction, Direction] = ("min", "max")
    kept = frontier(points, ways)
    twins = frontier([*points, *points], ways)
    assert twins == sorted([*kept, *(i + len(points) for i in kept)])


def test_equal_on_one_axis_and_worse_on_the_other_goes() -> None:
    assert frontier([(1, 5), (2, 5)], ("max", "max")) == [1]
    assert frontier([(1, 5), (1, 4)], ("max", "max")) == [0]
    assert frontier([(1, 5), (2, 5)], ("min", "max")) == [0]


def test_single_and_none() -> None:
    assert frontier([(3.0, 4.0)], ("max", "min")) == [0]
    assert frontier([], ("max", "min")) == []


@pytest.mark.parametrize("bad", [(math.nan, 1.0), (1.0, math.nan)])
def test_nan_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="NaN"):
        frontier([(1.0, 2.0), bad], ("max", "max"))


def test_a_missing_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 2"):
        frontier([(1.0,)], ("max", "max"))


def test_two_axes_scale() -> None:
    points = [(float(i), float(100_000 - i)) for i in range(100_000)]
    begin = time.perf_counter()
    assert len(frontier(points, ("max", "max"))) == 100_000
    assert time.perf_counter() - begin < 5  # n² would take hours


def test_areas_of_staircases() -> None:
    assert hypervolume([(1, 3), (2, 2), (3, 1)], UP, (0, 0)) == 6
    assert hypervolume([(1, 3), (2, 2), (3, 1)], ("min", "min"), (4, 4)) == 6
    assert hypervolume([(2, 3)], ("min", "max"), (5, 1)) == 6
    assert hypervolume([(2, 3), (2, 3), (1, 1)], UP, (0, 0)) == 6
    assert hypervolume([(2, 3), (9, -1)], UP, (1, 1)) == 2
    assert hypervolume([], UP, (0, 0)) == 0
    with pytest.raises(ValueError, match="NaN"):
        hypervolume([(1, 3)], UP, (0, math.nan))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12))
def test_an_area_is_the_cells_that_some_point_reaches(points: list[tuple[int, int]]) -> None:
    cells = sum(
        any(x > column and y > row for x, y in points) for column in range(6) for row in range(6)
    )
    assert hypervolume(points, UP, (0, 0)) == cells
    mirrored = [(-x, y) for x, y in points]
    assert hypervolume(mirrored, ("min", "max"), (0, 0)) == cells


def test_what_beats_a_point_is_on_the_frontier() -> None:
    assert dominators([(1, 5), (2, 5), (2, 4), (3, 1)], UP) == [1, None, 1, None]
    assert dominators([(1, 1), (2, 2), (3, 3)], ("min", "min")) == [None, 0, 0]
    assert dominators([(1, 1), (4, 1), (2, 3), (1, 3), (2, 3)], UP) == [2, None, None, 2, None]


@given(st.data(), directions)
def test_what_beats_a_point_does_so_by_the_definition(
    data: st.DataObject, ways: list[Direction]
) -> None:
    points = data.draw(st.lists(st.tuples(*[small for _ in ways]), max_size=25))
    kept = brute(points, ways)
    for point, by in zip(points, dominators(points, ways), strict=True):
        if by is not None:
            assert by in kept
            assert brute([point, points[by]], ways) == [1]
    assert [n for n, by in enumerate(dominators(points, ways)) if by is None] == kept


def test_what_beats_a_point_is_found_in_a_long_table() -> None:
    n = 20_000
    points = [(float(i), float(n - i)) for i in range(n)] + [(n - 1.5, 0.5)] * n
    begin = time.perf_counter()
    assert set(dominators(points, UP)) == {None, n - 1}
    assert time.perf_counter() - begin < 5  # n² would take minutes
