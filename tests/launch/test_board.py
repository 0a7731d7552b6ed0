from __future__ import annotations

import pytest

from infx.domain.status import OK, Status
from infx.launch.board import Board
from infx.launch.events import Event
from infx.plan.jobs import SERVER_START_S, job_s, point_s
from tests.store.tiny_plans import job, plan, record, stands


@pytest.fixture
def board() -> Board:
    whole = plan(job(0), job(1))
    return Board.of("run", whole, stands(whole))


def at(t: float, event: str, **more) -> Event:
    return Event(t=t, event=event, **more)


def first(board: Board):
    return next(iter(board.lines.values()))


def test_nothing_is_known_yet_so_the_plan_is_the_estimate(board: Board):
    assert board.left_s(0) == pytest.approx(sum(job_s(line.job) for line in board.lines.values()))
    assert board.points == (0, 4)


def test_points_with_a_kept_result_are_done():
    whole = plan(job(0))
    first, second = stands(whole)
    statuses = {first: OK, second: Status("cancelled")}
    assert Board.of("run", whole, statuses).points == (1, 2)


def test_a_job_goes_through_its_phases(board: Board):
    line = first(board)
    label = line.job.points[0].label
    board.launched(line.job.job_id, 1, 100)
    assert line.state == "queued"
    board.event(line.job.job_id, at(101, "server-starting"))
    assert "ready after 5 s" in board.event(line.job.job_id, at(105, "server-ready"))
    started = board.event(line.job.job_id, at(106, "point-started", point=label))
    assert (line.state, line.point) == ("running", label)
    assert line.job.points[0].name in started
    board.event(line.job.job_id, at(107, "phase", phase="profiling", expected_s=9))
    assert (line.phase, line.expected_s) == ("profiling", 9)
    ended = at(136, "point-ended", point=label, status="measured")
    assert "measured after 30 s" in board.event(line.job.job_id, ended)
    assert line.done == 1
    assert board.event(line.job.job_id, at(137, "a-later-infx-says-more")) == ""


def test_the_estimate_learns_the_median_of_each_phase(board: Board):
    line, other = board.lines.values()
    one, two = line.job.points
    board.launched(line.job.job_id, 1, 0)
    board.event(line.job.job_id, at(3 * SERVER_START_S, "server-ready"))
    ready_s = 3 * SERVER_START_S
    board.event(line.job.job_id, at(ready_s, "point-started", point=one.label))
    took_s = 2 * point_s(one)
    ended = at(ready_s + took_s, "point-ended", point=one.label, status="measured")
    board.event(line.job.job_id, ended)
    later = 3 * SERVER_START_S + 2 * sum(point_s(p) for p in other.job.points)
    assert board.left_s(ready_s + took_s) == pytest.approx(2 * point_s(two) + later)


def test_time_left_runs_down_but_never_below_what_comes_after(board: Board):
    line, other = board.lines.values()
    board.launched(line.job.job_id, 1, 0)
    values = [board.left_s(now_s) for now_s in (0, 10, 100_000)]
    assert values == sorted(values, reverse=True)
    to_come_s = job_s(line.job) - SERVER_START_S + job_s(other.job)
    assert values[-1] == pytest.approx(to_come_s)


def test_a_point_that_takes_long_takes_no_time_from_the_next(board: Board):
    line, other = board.lines.values()
    one, two = line.job.points
    board.launched(line.job.job_id, 1, 0)
    board.event(line.job.job_id, at(1, "server-ready"))
    board.event(line.job.job_id, at(1, "point-started", point=one.label))
    start_s = board.timing.start_s(other.job)
    rest_s = point_s(two) + start_s + sum(point_s(p) for p in other.job.points)
    assert board.left_s(2) == pytest.approx(point_s(one) - 1 + rest_s)
    assert board.left_s(100_000) == pytest.approx(rest_s)


def test_a_cancelled_point_is_not_done(board: Board):
    line = first(board)
    label = line.job.points[0].label
    board.launched(line.job.job_id, 1, 0)
    board.event(line.job.job_id, at(1, "point-started", point=label))
    board.event(line.job.job_id, at(2, "point-ended", point=label, status="cancelled"))
    assert board.points == (0, 4)
    cancelled = record(line.job.points[0], "run", line.job.job_id, 1, Status("cancelled"))
    board.ended(line.job.job_id, [cancelled])
    assert board.points == (0, 4)


def test_what_the_job_told_of_a_failure_is_not_told_again(board: Board):
    line = first(board)
    label = line.job.points[0].label
    board.launched(line.job.job_id, 1, 0)
    board.event(line.job.job_id, at(1, "point-started", point=label))
    ended = at(2, "point-ended", point=label, status="failed:server-died", sentence="code 1")
    assert "failed:server-died after 1 s: code 1" in board.event(line.job.job_id, ended)
    failed = Status("failed", "server-died", "code 1")
    found = record(line.job.points[0], "run", line.job.job_id, 1, failed)
    assert board.ended(line.job.job_id, [found]) == []


def test_the_end_of_an_attempt_says_each_verdict(board: Board):
    line = first(board)
    board.launched(line.job.job_id, 1, 0)
    statuses = [OK, Status("failed", "server-died", "exit code 1")]
    records = [
        record(p, "run", line.job.job_id, 1, s)
        for p, s in zip(line.job.points, statuses, strict=True)
    ]
    told = board.ended(line.job.job_id, records)
    assert told == ["tiny.s1.c1: ok", "tiny.s1.c2: failed:server-died: exit code 1"]
    assert (line.state, line.verdict, line.done) == ("ended", "failed:server-died", 2)


def test_what_a_job_waited_in_a_queue_is_no_part_of_its_start(board: Board):
    line, other = board.lines.values()
    for number, each in enumerate((line, other), 1):
        board.launched(each.job.job_id, number, 0)
        board.polled(each.job.job_id, "queued", "waits (Resources)")
    assert board.queued == {"waits (Resources)": 2}
    assert board.left_s(500) == pytest.approx(job_s(line.job) + job_s(other.job))
    board.event(line.job.job_id, Event(t=500, event="job-started"))
    assert "ready after 8 s" in board.event(line.job.job_id, Event(t=508, event="server-ready"))
    assert board.queued == {"waits (Resources)": 1}


def test_a_suspect_end_is_told_and_a_queue_is_not_told_for_each_job(board: Board):
    [line, _] = board.lines.values()
    board.launched(line.job.job_id, 1, 0)
    assert board.polled(line.job.job_id, "queued", "waits (Resources)") == ""
    told = board.polled(line.job.job_id, "suspect", "Slurm has no job of its name")
    assert told == f"{line.job.name}: suspect: Slurm has no job of its name"
    assert board.polled(line.job.job_id, "suspect", "Slurm has no job of its name") == ""
    board.stopping(line.job.job_id)
    assert board.polled(line.job.job_id, "running", "") == ""
    assert line.state == "stopping"


def test_a_job_that_was_stopped_before_its_first_point_tells_no_time(board: Board):
    [line, _] = board.lines.values()
    board.launched(line.job.job_id, 1, 0)
    point = line.job.points[0]
    ended = Event(t=9, event="point-ended", point=point.label, status="cancelled")
    assert board.event(line.job.job_id, ended).endswith(": cancelled")


def test_one_that_has_told_its_end_takes_no_time_from_those_whose_turn_comes():
    whole = plan(job(0, points=1), job(1, points=1))
    board = Board.of("run", whole, stands(whole))
    first, second = board.lines.values()
    for line in (first, second):
        board.launched(line.job.job_id, 1, 0)
    board.polled(second.job.job_id, "queued", "other attempts have their turn")
    board.event(first.job.job_id, Event(t=1, event="job-started"))
    assert (first.busy, second.busy) == (True, False)
    board.event(first.job.job_id, Event(t=9, event="job-ended"))
    first.left.clear()
    assert not first.busy
    assert board.left_s(9) == pytest.approx(job_s(second.job))
