"""The canary of an entry, the rest of it, and what stops it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.plan import Job
from infx.domain.status import CANCELLED, OK, Status
from infx.launch.fanout import Fanout, entry_of
from tests.store.tiny_plans import job, plan, stands

DIED = Status("failed", "server-died", "exit code 1")
LOST = Status("failed", "job-lost")
INVALID = Status("invalid", "errors")


def of(entry: str, number: int, points: int = 1) -> Job:
    made = job(number, points)
    return replace(made, points=tuple(replace(p, entry=entry) for p in made.points))


A = [of("a", 0, 3), of("a", 1, 1), of("a", 2, 2)]
B = [of("b", 3, 2), of("b", 4, 1)]
JOBS = [*A, *B]


def test_without_a_canary_all_go() -> None:
    assert Fanout().ready(JOBS, []) == JOBS
    assert Fanout().ready(JOBS, [A[0]]) == JOBS[1:]  # but not twice at once


def test_the_cheapest_job_of_each_entry_goes_first() -> None:
    fanout = Fanout(canary=True)
    canaries = fanout.ready(JOBS, [])
    assert canaries == [A[1], B[1]]
    assert fanout.ready(JOBS, canaries) == []


def test_a_canary_that_measures_lets_its_entry_go_and_no_other() -> None:
    fanout = Fanout(canary=True)
    fanout.ready(JOBS, [])
    fanout.ended(A[1], [OK])
    assert fanout.ready([A[0], A[2], *B], [B[1]]) == [A[0], A[2]]


@pytest.mark.parametrize("status", [INVALID, Status("measured")])
def test_a_server_that_answered_is_proof_enough(status: Status) -> None:
    fanout = Fanout(canary=True)
    fanout.ready(A, [])
    fanout.ended(A[1], [DIED, status])
    assert fanout.ready([A[0], A[2]], []) == [A[0], A[2]]


def test_an_open_job_of_an_entry_that_has_shown_nothing_went_first() -> None:
    fanout = Fanout(canary=True)
    fanout.know(JOBS, stands(plan(*JOBS)))
    fanout.adopted(A[1])
    assert fanout.ready([A[0], A[2]], [A[1]]) == []
    fanout.ended(A[1], [DIED])
    assert fanout.stops(A[0])
    assert fanout.stopped["a"][0] == "canary-failed"


@pytest.mark.parametrize("canary", [True, False])
def test_an_open_job_is_no_canary_where_its_entry_has_proof_or_none_is_wanted(canary: bool) -> None:
    fanout = Fanout(canary=canary)
    proof = {(A[0].job_id, p.point_id): OK for p in A[0].points} if canary else {}
    fanout.know(JOBS, stands(plan(*JOBS)) | proof)
    fanout.adopted(A[1])
    fanout.ended(A[1], [DIED])
    assert not fanout.stops(A[2])


def test_a_canary_that_fails_stops_its_entry_and_says_why() -> None:
    fanout = Fanout(canary=True)
    fanout.ready(JOBS, [])
    fanout.ended(A[1], [DIED])
    fanout.ended(B[1], [OK])
    assert fanout.stopped == {
        "a": ("canary-failed", f"{A[1].name} went first and ended failed:server-died")
    }
    assert fanout.ready([A[0], A[2], B[0]], []) == [B[0]]


def test_a_canary_that_is_tried_again_is_still_the_only_one() -> None:
    fanout = Fanout(canary=True)
    fanout.ready(A, [])  # ended by the machine's fault, so nobody called ended()
    assert fanout.ready(A, []) == [A[1]]
    fanout.ended(A[1], [LOST])  # the policy gave it up
    assert fanout.stopped["a"][0] == "canary-failed"


def test_another_goes_first_when_the_canary_was_cancelled() -> None:
    fanout = Fanout(canary=True)
    fanout.ready(A, [])
    fanout.ended(A[1], [CANCELLED])
    assert not fanout.stopped
    assert fanout.ready([A[0], A[2]], []) == [A[2]]


def test_a_resumed_run_needs_no_canary_where_something_was_measured() -> None:
    fanout = Fanout(canary=True)
    statuses = stands(plan(*JOBS))
    statuses[A[0].job_id, A[0].points[2].point_id] = OK
    statuses[B[0].job_id, B[0].points[0].point_id] = DIED
    fanout.know(JOBS, statuses)
    assert fanout.ready(JOBS, []) == [*A, B[1]]


def test_what_an_earlier_drive_launched_is_waited_for_like_a_canary() -> None:
    fanout = Fanout(canary=True)
    assert fanout.ready(A[1:], [A[0]]) == []
    fanout.ended(A[0], [DIED])  # it was not sent first, so it stops nothing
    assert not fanout.stopped
    assert fanout.ready(A[1:], []) == [A[1]]


@pytest.mark.parametrize("status", [DIED, INVALID])
def test_fail_fast_stops_an_entry_at_its_first_failure(status: Status) -> None:
    fanout = Fanout(fail_fast=True)
    fanout.ended(A[0], [OK, CANCELLED, status])
    assert fanout.stopped == {"a": ("stopped-early", f"{A[0].name} ended {status}")}
    assert fanout.ready(JOBS, []) == B


def test_fail_fast_does_not_mind_what_was_cancelled_or_is_good() -> None:
    fanout = Fanout(fail_fast=True)
    fanout.ended(A[0], [OK, CANCELLED])
    fanout.ended(A[1], [])
    assert not fanout.stopped


def test_the_first_reason_to_stop_stands() -> None:
    fanout = Fanout(canary=True, fail_fast=True)
    fanout.ready(A, [])
    fanout.ended(A[1], [DIED])
    fanout.ended(A[2], [INVALID])
    assert fanout.stopped["a"][0] == "canary-failed"


FATES = st.sampled_from(["ok", "failed", "invalid", "cancelled", "again"])


@settings(max_examples=40, deadline=None)
@given(st.booleans(), st.booleans(), st.data())
def test_jobs_go_once_at_a_time_and_nothing_of_a_stopped_entry(
    canary: bool, fail_fast: bool, data: st.DataObject
) -> None:
    fanout = Fanout(canary=canary, fail_fast=fail_fast)
    waiting, done = {j.job_id: j for j in JOBS}, []
    held: dict[str, Job] = {}
    for _ in range(60):
        for going in fanout.ready(waiting.values(), list(held.values())):
            assert going.job_id not in held
            assert entry_of(going) not in fanout.stopped
            same = [j for j in held.values() if entry_of(j) == entry_of(going)]
            assert not (same and canary and entry_of(going) not in fanout.proven)
            held[going.job_id] = waiting.pop(going.job_id)
        if not held:
            break
        ended = held.pop(data.draw(st.sampled_from(sorted(held))))
        fate = data.draw(FATES)
        if fate == "again":
            waiting[ended.job_id] = ended
            continue
        done.append(fate)
        statuses = {"ok": OK, "failed": DIED, "invalid": INVALID, "cancelled": CANCELLED}
        fanout.ended(ended, [statuses[fate]])
    else:
        return  # tried again for ever
    assert {entry_of(j) for j in waiting.values()} <= set(fanout.stopped)
    if not {"failed", "invalid"} & set(done):
        assert len(done) == len(JOBS)


def test_chosen_jobs_go_first_and_each_must_measure_something() -> None:
    fanout = Fanout(canary=True, chosen=frozenset({A[0].job_id, A[2].job_id}))
    assert fanout.ready(JOBS, []) == [A[0], A[2], B[1]]  # of b none was chosen: its cheapest
    fanout.ended(A[0], [OK])
    assert fanout.ready([A[1]], [A[2]]) == []
    fanout.ended(A[2], [OK])
    assert fanout.ready([A[1]], []) == [A[1]]


def test_one_chosen_job_that_fails_stops_its_entry_though_another_did_not() -> None:
    fanout = Fanout(canary=True, chosen=frozenset({A[0].job_id, A[2].job_id}))
    fanout.ready(A, [])
    fanout.ended(A[0], [OK])
    fanout.ended(A[2], [DIED])
    assert fanout.stopped["a"] == ("canary-failed", f"{A[2].name} went first and ended {DIED}")


def test_a_resumed_run_waits_for_the_chosen_jobs_that_measured_nothing_yet() -> None:
    statuses = {(job.job_id, p.point_id): Status("pending") for job in A for p in job.points}
    statuses |= {(A[0].job_id, p.point_id): OK for p in A[0].points}
    fanout = Fanout(canary=True, chosen=frozenset({A[0].job_id, A[2].job_id}))
    fanout.know(A, statuses)
    assert fanout.ready([A[1], A[2]], []) == [A[2]]
    fanout.ended(A[2], [OK])
    assert fanout.ready([A[1]], []) == [A[1]]
