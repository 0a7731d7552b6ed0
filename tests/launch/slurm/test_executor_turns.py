"""Attempts that take turns in one job of a scheduler, as the Slurm executor follows them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from infx.job import claim
from infx.launch.executor import Order
from tests.launch.slurm.executor_bench import IN_ORDER, Bench, finish
from tests.launch.slurm.played import queued
from tests.launch.slurm.sample_batches import batch
from tests.launch.slurm.test_batch import grouped


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def begin(order: Order) -> None:
    assert claim.take(order.folder, claim.Claim(by="job", scheduler_id="100"))
    (order.folder / "events.jsonl").touch()


def row_of(bench: Bench, state: str) -> None:
    name = bench.open[0].attempt.batch
    bench.transport.answers["squeue"] = queued("100", state, name) if state else ""


def test_a_group_is_one_job_and_each_attempt_is_where_its_turn_is(bench: Bench) -> None:
    assert set(bench.submit_turns(3).values()) == {"100"}
    assert bench.transport.count("submit ") == 1
    row_of(bench, "PENDING")
    assert {state.phase for state in bench.look()} == {"queued"}
    row_of(bench, "RUNNING")
    begin(bench.open[0])
    assert [state.phase for state in bench.look()] == ["running", "queued", "queued"]
    finish(bench.open[0])
    begin(bench.open[1])
    assert [state.phase for state in bench.look()] == ["running", "running", "queued"]
    finish(bench.open[1])
    row_of(bench, "COMPLETED")
    bench.look()
    ended = bench.look()
    assert [(state.phase, state.void) for state in ended] == [
        ("ended", False),
        ("ended", False),
        ("ended", True),
    ]
    holder = claim.holder(bench.open[2].folder)
    assert holder is not None
    assert holder.by == "infx"  # it can surely not start any more


def test_while_one_of_them_writes_none_of_a_forgotten_job_is_given_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, patience_s=0.2)
    bench.submit_turns(2)
    begin(bench.open[0])
    row_of(bench, "")
    bench.look()
    time.sleep(0.25)
    (bench.open[0].folder / "events.jsonl").write_text("it goes on\n")
    assert [state.phase for state in bench.look()] == ["suspect", "suspect"]
    time.sleep(0.25)
    first, second = bench.look()
    assert (first.code, second.void) == ("job-lost", True)


def test_a_group_is_cancelled_as_the_one_job_that_it_is(bench: Bench) -> None:
    bench.submit_turns(3)
    name = bench.open[0].attempt.batch
    row_of(bench, "RUNNING")
    bench.look()
    bench.executor.cancel(bench.open[1:2])
    assert bench.cancels() == [f'scancel --user="$user" --name={name} {how}' for how in IN_ORDER]


def test_a_group_over_the_partitions_limit_asks_for_that_limit(bench: Bench) -> None:
    jobs = [replace(o.job, time_limit_s=3600) for o in grouped(batch(4).orders)]
    bench.executor.check(jobs)  # the partition allows two hours
    bench.executor.check(jobs)
    [_, asked] = [text for text in bench.transport.asked if "--test-only" in text]
    assert "#SBATCH --time=120\n" in asked
