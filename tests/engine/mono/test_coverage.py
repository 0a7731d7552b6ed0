"""What is counted, and what of it is eligible."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.mono.coverage import Coverage, eligible
from infx.engine.mono.refusal import Refusal
from tests.engine.mono.recording import bound, rows

CLOSED = Refusal("mono-closed", "closed")


@pytest.mark.parametrize(
    ("count", "prefill", "expected"),
    [(0, False, False), (1, False, True), (16, False, True), (17, False, False), (3, True, False)],
)
def test_eligible_is_decode_of_one_to_sixteen_rows(
    count: int, prefill: bool, expected: bool
) -> None:
    assert eligible(count, prefill) is expected


def test_a_served_run_is_counted() -> None:
    mono = bound()
    for count, prefill in ((1, False), (3, False), (16, False), (17, False), (5, True)):
        mono.prepare_step(rows(count, prefill=prefill))
    mono.prepare_step(rows(4, batch_ids=None))
    found = mono.coverage.snapshot()
    assert (found.steps, found.decode, found.eligible, found.mono) == (6, 5, 4, 3)
    assert found.refusals == {
        "mono-too-many-rows": 1,
        "mono-prefill": 1,
        "mono-batch-ids-missing": 1,
    }
    assert (found.coverage, found.share) == (3 / 4, 3 / 5)


def test_without_steps_there_is_no_share() -> None:
    found = Coverage().snapshot()
    assert (found.coverage, found.share) == (None, None)


def test_a_server_whose_bind_was_refused_covers_nothing() -> None:
    coverage = Coverage()
    coverage.count(4, False, Refusal("mono-tp", "tp 2"))
    assert (coverage.snapshot().coverage, coverage.snapshot().eligible) == (0.0, 1)


def test_a_snapshot_is_plain_values_and_does_not_follow() -> None:
    coverage = Coverage()
    coverage.count(4, False, CLOSED)
    found = coverage.snapshot()
    text = json.dumps(dataclasses.asdict(found))
    coverage.count(4, False, CLOSED)
    assert json.loads(text)["refusals"] == found.refusals == {"mono-closed": 1}


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.booleans())))
def test_counts_add_up(steps: list[tuple[int, bool, bool]]) -> None:
    coverage = Coverage()
    for count, prefill, served in steps:
        served = served and eligible(count, prefill)
        coverage.count(count, prefill, None if served else CLOSED)
    found = coverage.snapshot()
    assert found.steps == len(steps) == found.mono + sum(found.refusals.values())
    assert found.mono <= found.eligible <= found.decode <= found.steps
    assert found.coverage is None or 0 <= found.coverage <= 1
