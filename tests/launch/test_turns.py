"""Repeats and arms in turn on this machine: order kept, nothing between, nothing twice."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.domain.plan import Job, Plan
from infx.domain.status import Status
from infx.launch.fanout import Fanout
from infx.launch.local import LocalExecutor
from infx.launch.policy import Policy
from infx.launch.runs import create_run, open_store
from infx.launch.sweep import Asked, Sweep
from infx.launch.waiting import Waiting
from infx.plan.repeats import interleaved, repeated
from infx.plan.saved import write_plan
from infx.store import FILE, RunLock, Store
from tests.launch.drive import PROGRAM, Quiet, drive, measured
from tests.store.tiny_plans import job, judge, plan, run_row

DIED = Status("failed", "server-died", "exit code 1")


def in_turn(*arms: Job) -> Plan:
    return interleaved(plan(*arms), "max-num-seqs")


def of_entry(entry: str, made: Job) -> Job:
    return replace(made, points=tuple(replace(p, entry=entry) for p in made.points))


def swept(results: Path, whole: Plan, **asked: Any) -> None:
    """Drive a plan to its end in this process."""
    with open_store(results) as store:
        run = create_run(store, results, whole, source="t", project=results, executor="local")
        executor = LocalExecutor(program=PROGRAM)
        executor.tick_s = 0.01
        with RunLock(Path(run.folder)):
            Sweep(store, run, whole, executor, judge, Quiet(), Asked(**asked)).run()


def began(results: Path) -> list[str]:
    """Return the names of the jobs' folders in the order in which the jobs were launched."""
    with Store(results / FILE) as store:
        [run] = store.runs()
        names = {row.job_id: row.shown for row in store.points(run.run_id)}
        return [_short(names[a.job_id]) for a in store.attempts(run.run_id)]


def _short(shown: str) -> str:
    """``tiny.s1.c1-0123abcd-r2`` → ``s1-r2``."""
    server, _, mark = shown.removeprefix("tiny.").partition(".")
    return server + ("-r2" if mark.endswith("-r2") else "")


def ends(results: Path) -> list[tuple[int, str]]:
    with Store(results / FILE) as store:
        [run] = store.runs()
        return [(row.repeat, str(row.status)) for row in store.points(run.run_id)]


def test_the_first_time_of_all_comes_before_the_second_of_any(tmp_path: Path) -> None:
    jobs = [of_entry(name, job(n, points=1)) for n, name in enumerate("aba")]
    swept(tmp_path, repeated(plan(*jobs), 2))
    assert began(tmp_path) == ["s1", "s2", "s3", "s1-r2", "s2-r2", "s3-r2"]
    assert ends(tmp_path) == [(1, "ok")] * 3 + [(2, "ok")] * 3
    with Store(tmp_path / FILE) as store:
        [run] = store.runs()
        assert [record.attempt.repeat for record in store.records(run.run_id)] == [1] * 3 + [2] * 3


def test_arms_take_turns_and_the_records_say_which_it_was(tmp_path: Path) -> None:
    swept(tmp_path, in_turn(job(0, points=1), job(1, points=1)))
    assert began(tmp_path) == ["s1", "s2", "s2-r2", "s1-r2"]
    assert {state for _, state in ends(tmp_path)} == {"ok"}


@pytest.mark.parametrize("asked", [{}, {"fail_fast": True}, {"canary": True}])
def test_a_part_that_fails_keeps_none_of_its_group_from_being_measured(
    tmp_path: Path, asked: dict[str, bool]
) -> None:
    first, second, *rest = in_turn(job(0, points=1), job(1, points=1)).jobs
    bad = replace(first, arm=replace(first.arm, options={"behave": "fail"}))
    later = job(5, points=1)
    swept(tmp_path, plan(bad, second, *rest, later), **asked)
    order = ["s1", "s2", "s2-r2", "s1-r2"]
    alone = [] if "fail_fast" in asked else ["s6"]
    assert began(tmp_path) == ([*alone, *order] if "canary" in asked else [*order, *alone])
    found = [state for _, state in ends(tmp_path)]
    assert found[:4] == ["failed:server-died", "ok", "ok", "ok"]
    assert found[4] == ("skipped:stopped-early" if "fail_fast" in asked else "ok")


def test_the_canary_is_a_group_as_a_whole_and_nothing_comes_between(tmp_path: Path) -> None:
    """The cheapest is in the last group: it goes first, to its end, and the others follow."""
    dear = in_turn(job(0, points=3), job(1, points=3)).jobs
    cheap = in_turn(*(job(n, points=1, seconds=0.03) for n in (2, 3))).jobs
    swept(tmp_path, plan(*dear, *cheap), canary=True)
    assert began(tmp_path) == ["s3", "s4", "s4-r2", "s3-r2", "s1", "s2", "s2-r2", "s1-r2"]


def test_a_canary_group_stops_its_entry_when_no_part_of_it_measures_anything() -> None:
    group = in_turn(job(2, points=1), job(3, points=1)).jobs
    other = job(0, points=9)
    fanout = Fanout(canary=True)
    assert fanout.ready([other, *group], []) == list(group)
    for number, part in enumerate(group):
        assert not fanout.stopped
        fanout.ended(part, [DIED])
        left = list(group[number + 1 :])
        assert fanout.ready([other, *left], []) == left
    assert fanout.stopped["tiny"][0] == "canary-failed"


def test_parts_of_a_group_that_is_open_wait_for_its_end() -> None:
    group = in_turn(job(2, points=1), job(3, points=1)).jobs
    other = job(0)
    assert Fanout().ready([group[1], other], [group[0]]) == [other]


def test_what_is_left_of_a_group_goes_before_all_others(tmp_path: Path) -> None:
    group = in_turn(job(2, points=1), job(3, points=1)).jobs
    other, whole = job(0), plan(job(0), *group)
    with Store(tmp_path / FILE) as store:
        store.create_run(run_row(tmp_path), whole)
        waiting = Waiting(store, run_row(tmp_path).run_id, whole, Policy(), Fanout())
        waiting.jobs = {j.job_id: j for j in (*reversed(group), other)}
        assert waiting.ready([]) == [other, *group]
        waiting.launched(group[0].job_id)
        assert waiting.ready([]) == [*group[1:], other]


def test_a_resume_measures_exactly_what_is_missing(tmp_path: Path) -> None:
    whole = in_turn(*(job(n, points=2, seconds=0.05) for n in (0, 1)))
    write_plan(whole, tmp_path / "plan.json")
    chance = random.Random(3)
    for _ in range(4):
        child = os.fork()
        if child == 0:
            drive(tmp_path)
            os._exit(0)
        time.sleep(chance.uniform(0.1, 0.5))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert drive(tmp_path)
    assert ends(tmp_path) == [(1, "ok")] * 4 + [(2, "ok")] * 4
    assert measured(tmp_path) == {p.point_id: 2 for p in whole.points}
