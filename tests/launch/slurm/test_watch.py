"""When the scheduler is asked, and what is concluded from its answers."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.executor import Order
from infx.launch.slurm.states import DROPPED, UNTOLD
from infx.launch.slurm.watch import MOST_NAMES, Pace, look
from infx.launch.transport import Answer
from tests.launch.slurm.played import SILENCE, Clock, Played, Said, booked, queued
from tests.launch.slurm.sample_batches import batch

REFUSED = Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller")
A, B = (order.name for order in batch(2).orders)


def orders(*names: str, started_s: float = 0.0) -> list[Order]:
    one = batch().orders[0]
    attempts = [replace(one.attempt, unique_name=name, started_s=started_s) for name in names]
    return [replace(one, attempt=attempt) for attempt in attempts]


def played(squeue: Said, sacct: Said = "", scontrol: Said = "") -> Played:
    made = Played()
    made.answers |= {"squeue ": squeue, "sacct ": sacct, "scontrol ": scontrol}
    return made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_question_is_asked_at_once_and_the_next_after_ten_seconds(clock: Clock) -> None:
    pace = Pace(clock=clock)
    assert pace.due()
    pace.asked(changed=True)
    clock.now_s += 9.9
    assert not pace.due()
    clock.now_s += 1.2  # 10 s and jitter
    assert pace.due()


def gap(pace: Pace, clock: Clock) -> float:
    start_s = clock.now_s
    while not pace.due():
        clock.now_s += 0.1
    return clock.now_s - start_s


def test_without_news_it_grows_to_a_minute_and_news_bring_it_back(clock: Clock) -> None:
    pace = Pace(clock=clock)
    gaps = []
    for _ in range(10):
        pace.asked(changed=False)
        gaps.append(gap(pace, clock))
    assert 13 < gaps[0] < 17
    assert 53 < gaps[-1] < 67
    pace.asked(changed=True)
    assert gap(pace, clock) < 11.2


def test_a_hurry_waits_ten_seconds_all_the_same(clock: Clock) -> None:
    pace = Pace(clock=clock)
    for _ in range(10):
        pace.asked(changed=False)
    pace.hurry()
    assert not pace.due()
    assert 9.9 < gap(pace, clock) < 10.2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.booleans()), max_size=30))
def test_never_more_than_one_question_in_ten_seconds(
    steps: list[tuple[float, bool, bool]],
) -> None:
    clock, asked = Clock(), []
    pace = Pace(clock=clock)
    for wait_s, hurry, changed in steps:
        clock.now_s += wait_s
        if hurry:
            pace.hurry()
        if pace.due():
            pace.asked(changed=changed)
            asked.append(clock.now_s)
    assert all(after_s - before_s >= 10 for before_s, after_s in pairwise(asked))


@pytest.mark.parametrize("answer", [REFUSED, SILENCE])
@pytest.mark.parametrize("accounting", [True, False])
def test_an_error_or_silence_of_squeue_is_no_answer(answer: Said, accounting: bool) -> None:
    assert look(played(answer), orders(A), accounting=accounting) is None


def test_one_question_is_enough_while_all_are_in_the_queue() -> None:
    transport = played(queued("1", "RUNNING", A) + queued("2", "COMPLETED", B))
    rows = look(transport, orders(A, B), accounting=True)
    assert rows
    assert [rows[name, None].state for name in (A, B)] == ["RUNNING", "COMPLETED"]
    [script] = transport.asked
    assert f"--name={A},{B}" in script
    assert "export LC_ALL=C TZ=UTC" in script


def test_rows_of_other_jobs_are_left_out() -> None:
    rows = look(played(queued("1", "RUNNING", "mine") + "noise\n"), orders(A), accounting=False)
    assert rows == {}


def test_tasks_of_an_array_are_told_apart() -> None:
    made = batch(2).numbered()
    name = made[0].attempt.batch
    text = queued("7_0", "RUNNING", name) + queued("7_1", "PENDING", name)
    rows = look(played(text), made, accounting=False)
    assert rows
    assert {key: row.state for key, row in rows.items()} == {
        (name, 0): "RUNNING",
        (name, 1): "PENDING",
    }


def test_accounting_is_asked_only_for_what_left_the_queue() -> None:
    transport = played(queued("1", "RUNNING", A), booked("2", "TIMEOUT", B))
    rows = look(transport, orders(A, B), accounting=True)
    assert rows
    assert rows[B, None].state == "TIMEOUT"
    assert f"--name={B}" in transport.asked[1]
    assert A not in transport.asked[1]


def test_a_job_that_accounting_alone_calls_running_is_a_ghost() -> None:
    transport = played("", booked("1", "RUNNING", A) + booked("2", "PENDING", B))
    assert look(transport, orders(A, B), accounting=True) == {}


def test_accounting_looks_back_an_hour_before_the_first_launch() -> None:
    transport = played("")
    start_s = time.time() - 86400
    look(transport, orders(A, started_s=start_s), accounting=True)
    found = re.search(r"-S (\S+)", transport.asked[1])
    assert found
    assert found[1] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start_s - 3600))


@pytest.mark.parametrize("answer", [Answer(1, "", "slurmdbd: connection refused"), SILENCE])
def test_when_accounting_is_silent_what_left_the_queue_is_untold(answer: Said) -> None:
    rows = look(played(queued("1", "RUNNING", A), answer), orders(A, B), accounting=True)
    assert rows
    assert rows[A, None].state == "RUNNING"
    assert rows[B, None].state == UNTOLD


@pytest.mark.parametrize("accounting", [True, False])
def test_a_task_that_is_not_in_the_queue_while_others_of_its_array_are(accounting: bool) -> None:
    made = batch(3).numbered()
    name = made[0].attempt.batch
    text = queued("7_0", "RUNNING", name) + queued("7_2", "PENDING", name)
    rows = look(played(text), made, accounting=accounting)
    assert rows
    assert rows[name, 1].state == DROPPED


CONTROL = (
    "JobId=1 JobName={name} JobState=FAILED Reason=NonZeroExitCode ExitCode=3:0"
    " SubmitTime=2026-11-29T20:45:16 StartTime=2026-11-29T20:45:16 EndTime=2026-11-29T20:45:17"
    " NodeList=node1\n"
)


def test_without_accounting_scontrol_tells_the_exit_code() -> None:
    transport = played(queued("1", "FAILED", A), scontrol=CONTROL.format(name=A))
    rows = look(transport, orders(A, B), accounting=False)
    assert rows
    assert rows.keys() == {(A, None)}
    assert rows[A, None].exit_code == (3, 0)
    assert transport.count("sacct") == 0
    assert "show job $i" in transport.asked[1]


def test_a_silent_accounting_is_replaced_by_scontrol() -> None:
    transport = played(queued("1", "FAILED", A), SILENCE, CONTROL.format(name=A))
    rows = look(transport, orders(A), accounting=True)
    assert rows
    assert rows[A, None].exit_code == (3, 0)


def test_accounting_tells_the_exit_code_of_what_failed() -> None:
    transport = played(queued("1", "FAILED", A), booked("1", "FAILED", A, "0:53"))
    rows = look(transport, orders(A), accounting=True)
    assert rows
    assert rows[A, None].exit_code == (0, 53)
    assert transport.count("scontrol") == 0


@pytest.mark.parametrize(("count", "named"), [(MOST_NAMES, True), (MOST_NAMES + 1, False)])
def test_too_many_names_are_not_listed(count: int, named: bool) -> None:
    transport = played("")
    look(transport, orders(*(f"infx-{n}" for n in range(count))), accounting=True)
    assert ["--name" in script for script in transport.asked] == [named, named]
