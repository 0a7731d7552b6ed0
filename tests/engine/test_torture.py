"""Random requests, aborts and limits: each output is that of the request alone, no page is lost."""

from __future__ import annotations

import itertools

import pytest

from infx.engine.request import SamplingParams
from tests.engine.driving_engine import Driven, prompt
from tests.engine.tiny import serve_tiny
from tests.engine.torture import Alone, require, serving, torture


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    serve_tiny(monkeypatch)


@pytest.mark.parametrize(
    ("seed", "episodes", "count"),
    [(4, 6, 10), pytest.param(12, 12, 25, marks=pytest.mark.slow)],
)
def test_no_history_changes_an_output_or_loses_a_page(seed, episodes, count):
    seen = torture(seed, episodes, count)
    require(seen, requests=episodes * count)


@pytest.mark.parametrize(
    ("method", "k"),
    [
        pytest.param("none", 0, marks=pytest.mark.slow),
        pytest.param("eagle3", 3, marks=pytest.mark.slow),
        ("dspark", 5),
    ],
)
def test_concurrency_goes_up_and_down_on_a_live_cache(method, k):
    alone, driven = Alone(), Driven(serving(method, k, max_num_seqs=8, num_blocks=90))
    params, numbers, taken = SamplingParams(max_tokens=12, ignore_eos=True), itertools.count(), []
    for concurrency in (8, 4, 8, 4):
        phase, driven.most_running = [], 0
        while len(phase) < 16 or any(r.finish_reason is None for r in phase):
            going = sum(request.finish_reason is None for request in phase)
            for _ in range(min(concurrency - going, 16 - len(phase))):
                number = next(numbers)
                phase.append(driven.add(prompt(number % 3, 50)[: 20 + 5 * (number % 7)], params))
            driven.step()
        assert driven.most_running == concurrency
        taken += phase
    assert driven.scheduler.prefix_hits > 0
    assert driven.scheduler.pool.free == 90
    for request in taken:
        expected, _ = alone.output(tuple(request.tokens[:-12]), params)
        assert request.tokens == expected.tokens
