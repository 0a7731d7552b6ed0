"""The jobs that are not launched: where they may go, and which come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infx.domain.outcome import Ending
from infx.domain.plan import Job
from infx.domain.status import OK, Status
from infx.launch.fanout import Fanout
from infx.launch.policy import Policy
from infx.launch.waiting import Waiting
from infx.store import FILE, Store
from tests.store.tiny_plans import job, plan, record, run_row

JOBS = [job(0, points=2), job(1, points=1), job(2, points=1)]
DIED = Status("failed", "server-died")


class Run:
    """A run in a store, and what waits of it."""

    def __init__(self, store: Store, results: Path) -> None:
        self.store, self.row = store, run_row(results)
        whole = plan(*JOBS)
        store.create_run(self.row, whole)
        fanout = Fanout(fail_fast=True)
        self.waiting = Waiting(store, self.row.run_id, whole, Policy(), fanout)

    def ends(self, of: Job, ending: Ending) -> Ending:
        [attempt] = self.store.next_attempts(self.row.run_id, [of.job_id])
        self.store.intend([attempt])
        self.store.end_attempt(attempt.unique_name, [], ending)
        return ending


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
    run.store.save(record(JOBS[0].points[0], run.row.run_id, JOBS[0].job_id, status=OK))
    ending = run.ends(JOBS[0], infra("node1", "a"))
    back, why = run.waiting.again(JOBS[0].job_id, ending)
    assert back
    assert back.points == JOBS[0].points[1:]
    assert run.waiting.ready([]) == [back]
    assert why == f"{JOBS[0].name}: tried again, not on node1: a"


def test_what_has_its_limit_stays_away_and_says_so(run: Run) -> None:
    run.ends(JOBS[1], infra("node1", "a"))
    back, why = run.waiting.again(JOBS[1].job_id, run.ends(JOBS[1], infra("node2", "a")))
    assert back is None
    assert why == f"{JOBS[1].name}: not tried again: it failed twice in the same way"


def test_a_job_with_nothing_left_and_a_job_that_failed_itself_stay_away(run: Run) -> None:
    crash = Ending(outcome="engine", code="server-died")
    assert run.waiting.again(JOBS[1].job_id, run.ends(JOBS[1], crash)) == (None, "")
    run.store.save(record(JOBS[2].points[0], run.row.run_id, JOBS[2].job_id, status=OK))
    ending = run.ends(JOBS[2], infra("node1", "a"))
    assert run.waiting.again(JOBS[2].job_id, ending) == (None, "")


def test_the_rest_of_a_stopped_entry_is_skipped_and_recorded(run: Run) -> None:
    run.waiting.jobs = {left.job_id: left for left in JOBS[1:]}
    assert run.waiting.leave_out() == []
    run.waiting.over(JOBS[0].job_id, [DIED])
    assert run.waiting.stopped(JOBS[1])
    assert [job_id for job_id, _ in run.waiting.leave_out()] == [j.job_id for j in JOBS[1:]]
    assert run.waiting.jobs == {}
    told = run.waiting.statuses()
    assert {told[j.job_id, j.points[0].point_id].code for j in JOBS[1:]} == {"stopped-early"}
