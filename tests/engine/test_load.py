"""The server alone, under load: the null model gives the tokens."""

from __future__ import annotations

import pytest

from tests.engine.streaming_load import prove_load

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_64_streams_of_8_seconds_come_on_time_and_leave_nothing():
    prove_load(seconds=8, tries=3)
