"""What of the step loop's token rate survives the server."""

from __future__ import annotations

import pytest

from benchmarks.server import compare

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_at_least_three_fifths_of_the_step_loops_rate_survive_the_server():
    found = compare(rounds=5, tokens=32)
    print(found)
    assert found["share"] >= 0.6, found
