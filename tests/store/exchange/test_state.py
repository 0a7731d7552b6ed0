"""Which of two states of a run is the newer, whatever the clocks of two machines say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.status import OK, Status
from infx.store.exchange.state import State, relation, state_of
from tests.store.machines import RUN, Machine

SEEN = {"same": "same", "newer": "older", "older": "newer", "apart": "apart"}


def run(state: State) -> State:
    return replace(state, lineage=())


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> list[State]:
    """A run from its beginning to its end: two jobs, of which the first fails once."""
    with Machine(tmp_path_factory.mktemp("machine")) as one:
        first, second = one.begins().jobs
        states = [state_of(one.store, RUN)]

        def keep() -> None:
            states.append(state_of(one.store, RUN))

        one.launches(first)
        keep()
        one.ends(first, Status("failed", "job-lost"))
        keep()
        one.launches(first)
        keep()
        one.launches(second)
        keep()
        one.ends(second)
        keep()
        one.ends(first, OK)
        keep()
        return states


def test_later_is_newer_without_any_lineage(history: list[State]):
    for n, earlier in enumerate(history):
        for m, later in enumerate(history):
            wanted = "same" if n == m else "older" if n < m else "newer"
            assert relation(earlier, later) == wanted


def test_lineage_decides_where_verdicts_went_down(history: list[State]):
    whole = history[-1]
    points = tuple({**row, "state": "invalid", "code": "errors"} for row in whole.rows["points"])
    judged = replace(whole, rows={**whole.rows, "points": points}, lineage=whole.descent)
    assert relation(judged, whole) == "newer"
    assert relation(whole, judged) == "older"
    assert relation(run(judged), whole) == "older"  # this is what the lineage is for


def test_lineage_of_a_folder_that_two_stores_share_hides_nothing(history: list[State]):
    """Who drives the run writes down that its end was pushed; the other store knows the middle."""
    whole, part = history[-1], replace(history[3], lineage=history[-1].descent)
    assert relation(part, whole) == "older"
    assert relation(whole, part) == "newer"


def test_an_end_without_a_result_is_known_as_well(history: list[State]):
    """Of an attempt that never started, say."""
    before = history[1]
    ended = tuple({**row, "ended_s": 5.0} for row in before.rows["attempts"])
    after = replace(before, rows={**before.rows, "attempts": ended})
    assert (relation(after, before), relation(before, after)) == ("newer", "older")


def test_places_and_order_of_keys_are_no_difference(history: list[State]):
    whole = history[-1]
    assert whole.placed("/elsewhere", "/other").digest == whole.digest
    rows = {name: tuple(dict(reversed(r.items())) for r in t) for name, t in whole.rows.items()}
    assert replace(whole, rows=rows).digest == whole.digest


def test_what_each_knows_alone_sets_them_apart(history: list[State]):
    start = history[0]
    first, second = (
        replace(start, rows={**start.rows, "attempts": (attempt,)})
        for attempt in history[4].rows["attempts"][:2]
    )
    assert relation(first, second) == relation(second, first) == "apart"


SOME = st.tuples(st.sets(st.integers(0, 2)), st.integers(0, 6), st.lists(st.integers(0, 6)))
"""Which attempts a state knows, whose points, and which states it says that it comes from."""


@given(SOME, SOME)
def test_the_relation_reads_the_same_from_both_sides(history: list[State], first, second):
    """Of any two subsets of what happened."""
    digests = [one.digest for one in history]

    def some(attempts: set[int], at: int, lineage: list[int]) -> State:
        rows = {
            **history[0].rows,
            "attempts": tuple(history[4].rows["attempts"][n] for n in attempts),
            "points": tuple(
                {**r, "record": r["record"] and ""} for r in history[at].rows["points"]
            ),
        }
        return replace(history[0], rows=rows, lineage=tuple(digests[n] for n in lineage))

    one, two = some(*first), some(*second)
    if not (one.digest in two.lineage and two.digest in one.lineage):
        assert relation(two, one) == SEEN[relation(one, two)]


def test_rows_of_a_later_infx_are_taken_as_far_as_they_are_known(tmp_path: Path):
    with Machine(tmp_path / "one") as one, Machine(tmp_path / "two") as two:
        one.whole()
        rows = {
            name: tuple({**row, "later": 1} for row in table)
            for name, table in one.store.rows(RUN).items()
        }
        two.store.restore(RUN, {**rows, "notes": ({"text": "x"},)})
        assert two.store.rows(RUN) == one.store.rows(RUN)
