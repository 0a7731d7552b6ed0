"""Orders of sums: every term once, and as hardware would add it."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.mono.arithmetic import add_up, dot, f32, sigmoid, vector
from infx.engine.mono.sums import Sum

SUMS = st.builds(
    Sum,
    st.just("s"),
    st.integers(1, 60),
    st.integers(1, 9),
    st.sampled_from((1, 2, 4, 8)),
    merged_by=st.sampled_from(("lane", "halving")),
)


@given(SUMS, st.integers(1, 60))
def test_each_term_is_added_once_and_each_lane_merged_once(total: Sum, extent: int) -> None:
    lanes = total.schedule(extent=extent)
    terms = [k for ranges in lanes for k in itertools.chain(*ranges)]
    assert sorted(terms) == list(range(extent))
    assert all(
        list(lane) == sorted(lane) for lane in (list(itertools.chain(*ranges)) for ranges in lanes)
    )
    merged = [other for _, other in total.merges()]
    assert sorted(merged) == list(range(1, total.lanes))


@given(SUMS)
def test_a_sum_is_numpys_float32_in_the_same_order(total: Sum) -> None:
    numbers = [((k * 2654435761) % 1000) / 7 - 60 for k in range(total.extent)]
    lanes = [np.float32(0)] * total.lanes
    for lane, ranges in enumerate(total.schedule()):
        for k in itertools.chain(*ranges):
            lanes[lane] += np.float32(np.float32(numbers[k]) * np.float32(numbers[-1 - k]))
    end = 0
    for end, other in total.merges():
        lanes[end] += lanes[other]
    assert dot(total, vector(numbers), vector(numbers[::-1])) == float(lanes[end])


def test_the_rank_in_the_union_regroups_a_sum_and_the_chunk_alone_does_not() -> None:
    bad = Sum("s", 6, 1, 4, ("union_rank", "chunk"))
    assert bad.schedule({"union_rank": 0}) != bad.schedule({"union_rank": 1})
    good = Sum("s", 6, 1, 4)
    assert good.schedule({"union_rank": 0}) == good.schedule({"union_rank": 1})
    by_expert = Sum("s", 6, 1, 4, ("expert", "chunk"))
    assert by_expert.schedule({"expert": 0}) != by_expert.schedule({"expert": 1})


def test_lanes_take_chunks_in_turn_and_merge_by_halves() -> None:
    total = Sum("s", 7, 2, 2)
    assert total.schedule() == ((range(0, 2), range(4, 6)), (range(2, 4), range(6, 7)))
    assert Sum("s", 8, 1, 4, merged_by="halving").merges() == ((0, 2), (1, 3), (0, 1))


def test_arrival_order_is_another_sum() -> None:
    total = Sum("s", 3, 1, 3, merged_by="arrival")
    terms = [vector([x]) for x in (1e8, 1.0, -1e8)]
    sums = {
        add_up(total, lambda k: terms[k], 1, arrivals=order)[0]
        for order in itertools.permutations(range(3))
    }
    assert sums == {0.0, 1.0}


@given(st.floats(width=64, allow_nan=False))
def test_f32_rounds_as_hardware_does(number: float) -> None:
    with np.errstate(over="ignore"):
        assert struct.pack("<f", f32(number)) == np.float32(number).tobytes()


@pytest.mark.parametrize("x", [-1e5, -90.0, -1.0, 0.0, 1.0, 90.0, 1e5])
def test_sigmoid_neither_overflows_nor_leaves_its_range(x: float) -> None:
    assert 0 <= sigmoid(x) <= 1
    assert sigmoid(x) + sigmoid(-x) == pytest.approx(1)
