"""The jobs that are not launched: where they may go, and which come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.outcome import Ending
from infx.domain.plan import Job
from infx.domain.record import PointRecord
from infx.domain.status import OK, Status
from infx.launch.executor import Order
from infx.launch.fanout import Fanout
from infx.launch.policy import Policy
from infx.launch.waiting import Waiting
from infx.store import FILE, Store
from tests.store.tiny_plans import job, plan, record, run_row

JOBS = [job(0, points=2), job(1, points=1), job(2, points=1)]
DIED = Status("failed", "server-died")

Ended = tuple[Order, tuple[PointRecord, ...], Ending]
"""An attempt that ended: what `Waiting.again` asks for."""


class Run:
    """A run in a store, and what waits of it."""

    def __init__(self, store: Store, results: Path) -> None:
        self.store, self.row = store, run_row(results)
        store.create_run(self.row, plan(*JOBS))
        self.waiting = self.waits_for(*JOBS)

    def waits_for(self, *jobs: Job) -> Waiting:
        fanout = Fanout(fail_fast=True)
        return Waiting(self.store, self.row.run_id, plan(*jobs), Policy(), fanout)

    def ends(self, of: Job, ending: Ending, *records: PointRecord, adopted: bool = False) -> Ended:
        [attempt] = self.store.next_attempts(self.row.run_id, [of.job_id])
        self.store.intend([attempt])
        self.store.end_attempt(attempt.unique_name, records, ending)
        order = Order(attempt=attempt, job=of, folder=Path("a1"), adopted=adopted)
        return order, records, ending

    def has(self, of: Job, number: int, status: Status) -> PointRecord:
        return record(of.points[number], self.row.run_id, of.job_id, status=status)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Store(tmp_path / FILE) as store:
        yield Run(store, tmp_path)


def infra(node: str, cause: str) -> Ending:
    return Ending(outcome="infra", code="node-failed", fingerprint=cause, node=node, sentence=cause)


def test_a_node_that_failed_two_jobs_gets_no_third_one(run: Run) -> None:
    run.ends(JOBS[0], infra("node1", "a"))
    assert run.waiting.excluded(JOBS) == [("node1",), (), ()]
    run.ends(JOBS[1], infra("node1", "b"))
    assert run.waiting.excluded(JOBS) == [("node1",)] * 3


def test_what_comes_back_is_what_is_left(run: Run) -> None:
    ended = run.ends(JOBS[0], infra("node1", "a"), run.has(JOBS[0], 0, OK))
    back, why = run.waiting.again(*ended)
    assert back
    assert back.points == JOBS[0].points[1:]
    assert run.waiting.ready([]) == [back]
    assert why == f"{JOBS[0].name}: tried again, not on node1: a"


def test_who_goes_on_tries_again_what_is_to_be_tried_again(run: Run) -> None:
    lost = Status("failed", "node-failed")
    first, second, third = JOBS
    run.ends(first, infra("node1", "a"), run.has(first, 0, lost), run.has(first, 1, lost))
    run.ends(second, Ending(outcome="engine"), run.has(second, 0, DIED))
    run.waiting.jobs = {of.job_id: of for of in JOBS}
    run.waiting.go_on()
    assert [*run.waiting.jobs.values()] == [first, third]
    run.ends(first, infra("node2", "a"))  # twice in the same way
    run.store.save(run.has(third, 0, Status("skipped", "canary-failed")))
    run.waiting.go_on()
    assert not run.waiting.jobs


def test_what_has_its_limit_stays_away_and_says_so(run: Run) -> None:
    run.ends(JOBS[1], infra("node1", "a"))
    back, why = run.waiting.again(*run.ends(JOBS[1], infra("node2", "a")))
    assert back is None
    assert why == f"{JOBS[1].name}: not tried again: it failed twice in the same way"


def test_a_job_with_nothing_left_and_a_job_that_failed_itself_stay_away(run: Run) -> None:
    crash = Ending(outcome="engine", code="server-died")
    assert run.waiting.again(*run.ends(JOBS[1], crash)) == (None, "")
    ended = run.ends(JOBS[2], infra("node1", "a"), run.has(JOBS[2], 0, OK))
    assert run.waiting.again(*ended) == (None, "")


def test_what_was_asked_again_comes_back_though_it_has_failed_before(run: Run) -> None:
    """``--retry-failed`` and ``--time-limit``: the old failure stands in the store meanwhile."""
    run.store.save(run.has(JOBS[1], 0, DIED))
    longer = replace(JOBS[1], time_limit_s=JOBS[1].time_limit_s + 1)
    lost = run.has(JOBS[1], 0, Status("failed", "job-lost"))
    assert run.waiting.again(*run.ends(longer, infra("node1", "a"), lost))[0] == longer
    never_begun = Ending(outcome="void", sentence="before its turn")
    assert run.waiting.again(*run.ends(longer, never_begun))[0] == longer


def test_an_adopted_attempt_takes_nothing_back_that_stands(run: Run) -> None:
    run.store.save(run.has(JOBS[0], 0, DIED))
    ended = run.ends(JOBS[0], Ending(outcome="void"), adopted=True)
    back, _ = run.waiting.again(*ended)
    assert back
    assert back.points == JOBS[0].points[1:]


def test_the_rest_of_a_begun_group_goes_before_all_others(run: Run) -> None:
    first, second, alone = replace(JOBS[1], group="g"), replace(JOBS[2], group="g"), JOBS[0]
    waiting = run.waits_for(first, alone, second)
    waiting.jobs = {one.job_id: one for one in (first, alone, second)}
    waiting.launched(alone.job_id)  # a job of its own begins nothing
    waiting.jobs[alone.job_id] = alone
    assert waiting.ready([]) == [first, alone, second]
    waiting.launched(first.job_id)
    assert waiting.ready([]) == [second, alone]


def test_the_rest_of_a_stopped_entry_is_skipped_and_recorded(run: Run) -> None:
    run.waiting.jobs = {left.job_id: left for left in JOBS[1:]}
    assert run.waiting.leave_out() == []
    run.waiting.over(JOBS[0].job_id, [DIED])
    assert run.waiting.stopped(JOBS[1])
    assert [job_id for job_id, _ in run.waiting.leave_out()] == [j.job_id for j in JOBS[1:]]
    assert run.waiting.jobs == {}
    told = run.waiting.statuses()
    assert {told[j.job_id, j.points[0].point_id].code for j in JOBS[1:]} == {"stopped-early"}
