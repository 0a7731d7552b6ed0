"""Nobody starves: long prompts, short prompts and decodes share the steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.config import EngineConfig
from infx.engine.request import Request, SamplingParams
from infx.engine.scheduler import shares
from tests.engine.driving_engine import Dice, Driven, prompt

LONG = 8000
ONE = SamplingParams(max_tokens=1, ignore_eos=True)


def dealt(**changes) -> Driven:
    """A scheduler at its default limits, with dice in the model's place."""
    config = EngineConfig(**({"max_num_seqs": 8, "max_num_batched_tokens": 512} | changes))
    return Driven(config, Dice(0, config.k))


def steps_until(driven: Driven, request: Request) -> int:
    """Steps until the request has its first token."""
    count = 0
    while not request.generated:
        assert driven.step()
        count += 1
    return count


@given(st.lists(st.integers(1, 9000), max_size=9), st.integers(0, 600))
def test_rows_are_shared_out_whole(needs, budget):
    given_rows = shares(needs, budget)
    assert all(0 <= rows <= need for rows, need in zip(given_rows, needs, strict=True))
    assert sum(given_rows) == min(budget, sum(needs))


@given(st.lists(st.integers(1, 900), min_size=1, max_size=9), st.integers(1, 600))
def test_the_oldest_gets_half_and_the_shortest_come_first(needs, budget):
    given_rows = shares(needs, budget)
    assert given_rows[0] >= min(needs[0], budget / 2)
    for number, need in enumerate(needs[1:], 1):
        if given_rows[number] < need:  # then no longer one that came later has anything
            longer = [given_rows[n] for n in range(1, len(needs)) if needs[n] > need]
            assert not any(longer)


@pytest.mark.parametrize("length", [1, 20, 255, 256, 257, 600, 1500])
def test_a_short_prompt_beside_a_long_one_waits_at_most_twice_as_long(length):
    driven = dealt()
    alone = steps_until(driven, driven.add(prompt(1, length), ONE))
    driven.add(prompt(0, LONG), ONE)
    driven.step()
    beside = steps_until(driven, driven.add(prompt(2, length), ONE))
    assert beside <= 2 * alone


def test_a_long_prompt_under_a_stream_of_short_ones_takes_at_most_twice_as_long():
    driven = dealt(prefix_caching=False)
    alone = steps_until(driven, driven.add(prompt(0, LONG), ONE))
    request, count = driven.add(prompt(0, LONG), ONE), 0
    while not request.generated:
        while len(driven.scheduler.waiting) < 8:
            driven.add(prompt(count % 50, 400), ONE)
            count += 1
        driven.step()
        alone -= 0.5
    assert alone >= -0.5
    assert count > 20


def test_equal_prompts_are_served_one_after_another():
    driven = dealt()
    requests = [driven.add(prompt(number, 512), ONE) for number in range(3)]
    assert [steps_until(driven, request) for request in requests] == [1, 1, 1]


def test_every_decode_is_in_every_step_beside_a_long_prompt():
    driven = dealt(max_num_seqs=4)
    decoding = [
        driven.add(prompt(n, 9), SamplingParams(max_tokens=30, ignore_eos=True)) for n in range(3)
    ]
    driven.step()
    long = driven.add(prompt(7, LONG), ONE)
    for expected in range(2, 12):
        driven.step()
        assert [request.generated for request in decoding] == [expected] * 3
    assert 0 < long.computed < LONG


def test_a_prompt_goes_on_when_every_other_seat_decodes():
    driven = dealt(max_num_seqs=4, max_num_batched_tokens=4)
    for number in range(3):
        driven.add(prompt(number, 3), SamplingParams(max_tokens=60, ignore_eos=True))
    late = driven.add(prompt(5, 40), ONE)
    assert steps_until(driven, late) < 60


def test_a_large_request_at_the_head_is_not_overtaken():
    driven = dealt(max_num_seqs=4, max_model_len=400, num_blocks=30)
    first = driven.add(prompt(0, 200), SamplingParams(max_tokens=20, ignore_eos=True))
    driven.step()
    large = driven.add(prompt(1, 390), ONE)
    small = [driven.add(prompt(n, 5), ONE) for n in range(2, 8)]
    while not large.generated:
        assert driven.step()
        assert large.generated or not any(request.generated for request in small)
    assert first.finish_reason


def test_a_prompt_takes_over_the_pages_that_another_is_filling():
    driven = dealt(max_num_batched_tokens=500)
    both = [driven.add(prompt(0, 2000), ONE) for _ in range(2)]
    driven.finish()
    assert both[0].cached_tokens == 0
    assert both[1].cached_tokens > 800
    assert driven.scheduler.prefix_hits == both[1].cached_tokens


def test_what_could_never_run_is_refused():
    driven = dealt(max_model_len=100, num_blocks=7)
    with pytest.raises(ValueError, match="does not fit"):
        driven.add(prompt(0, 90), SamplingParams(max_tokens=11))
    driven.add(prompt(0, 90), SamplingParams(max_tokens=10))
    driven.finish()
    assert driven.scheduler.pool.free == 7
