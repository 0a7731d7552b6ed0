"""Arms in turn on a real Slurm: one allocation, each attempt its own, nothing lost."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.plan import Job
from infx.plan.repeats import interleaved
from infx.store import FILE, Store, gather
from tests.launch.lab_fixture import Lab
from tests.launch.slurm import bench
from tests.launch.slurm.driven import Driven, driven
from tests.launch.slurm.scenarios import named
from tests.store.tiny_plans import job, judge, plan

pytestmark = pytest.mark.slow


def in_turn(*arms: Job) -> tuple[Job, ...]:
    return interleaved(plan(*arms), "max-num-seqs").jobs


def stands(results: Path) -> list[tuple[str, int, str]]:
    """Return (server and load, repeat, status) of each point, in the plan's order."""
    with Store(results / FILE) as store:
        [run] = store.runs()
        rows = store.points(run.run_id)
    return [(row.label.rpartition("-")[0], row.repeat, str(row.status)) for row in rows]


def order(results: Path) -> list[str]:
    """Return the points in the order in which they were measured, by their labels' digits."""
    [log] = results.glob("runs/*/measured.txt")
    with Store(results / FILE) as store:
        [run] = store.runs()
        names = {row.point_id: row.label.rpartition("-")[0] for row in store.points(run.run_id)}
    return [names[line] for line in log.read_text().split()]


def allocations(sweep: Driven) -> list[tuple[str, str]]:
    return [(attempt.batch[-6:], attempt.scheduler_id) for attempt in sweep.attempts()]


def arms_take_turns(lab: Lab, folder: Path) -> None:
    with driven(lab, folder / "r", *in_turn(job(0, points=1), job(1, points=1))) as sweep:
        sweep.finish()
        [(name, job_id)] = set(allocations(sweep))
        assert (name, len(sweep.attempts())) == ("-group", 4)
        assert lab.job(job_id)["JobState"] == "COMPLETED"
        assert {state for _, _, state in stands(folder / "r")} == {"ok"}
        assert order(folder / "r") == ["tiny.s1.c1", "tiny.s2.c1", "tiny.s2.c1", "tiny.s1.c1"]


def a_part_fails(lab: Lab, folder: Path) -> None:
    """The second of four is lost: the turns go on, and it is tried again, after them and alone."""
    first, second, *rest = in_turn(job(0, points=1), job(1, points=1))
    lost = replace(second, arm=replace(second.arm, options={"behave": "crash"}))
    with driven(lab, folder / "r", first, lost, *rest) as sweep:
        sweep.finish()
        ends = [state for _, _, state in stands(folder / "r")]
        assert ends == [
            "ok",
            "failed:out-of-memory",
            "ok",
            "ok",
        ]  # by itself it is one more SIGKILL
        assert bench.outcomes(folder / "r").count((1, "infra", "job-lost")) == 1
        batches = [attempt.batch for attempt in sweep.attempts()]
        assert [name[-6:] for name in batches[:4]] == ["-group"] * 4
        assert batches[4:] == [sweep.attempts()[4].unique_name]
        assert order(folder / "r") == ["tiny.s1.c1", "tiny.s2.c1", "tiny.s1.c1"]


def the_driver_is_killed_and_a_group_cancelled(lab: Lab, folder: Path) -> None:
    """Followed again after kill -9; interrupted, the rest is measured by the next drive alone."""
    gate = folder / "gate"
    arms = in_turn(*(job(n, points=1, gate=str(gate)) for n in (0, 1)))
    with driven(lab, folder / "r", *arms) as sweep:
        sweep.start()
        sweep.running(1)
        sweep.kill()
        sweep.start()
        sweep.hear("followed again", times=4)
        sweep.hear("3 queued: other attempts have their turn on its allocation")
        gate.touch()
        sweep.hear("c1: measured")
        gate.unlink()
        sweep.running(2)
        sweep.send(signal.SIGINT)
        assert sweep.ended() == 130
        before = stands(folder / "r")
        assert before[0] == ("tiny.s1.c1", 1, "ok")
        assert {state for _, _, state in before[2:]} <= {"cancelled", "pending"}
        done = order(folder / "r")
        gate.touch()
        sweep.finish()
        assert {state for _, _, state in stands(folder / "r")} == {"ok"}
        assert len(order(folder / "r")) == 4
        assert order(folder / "r")[: len(done)] == done
        groups = {a.batch for a in sweep.attempts() if a.batch.endswith("-group")}
        assert len(groups) == 2


def the_store_is_lost_while_a_group_goes_on(lab: Lab, folder: Path) -> None:
    """What was submitted is in the attempts' own folders: it is followed, not submitted anew."""
    gate, results = folder / "gate", folder / "r"
    arms = in_turn(*(job(n, points=1, gate=str(gate)) for n in (0, 1)))
    with driven(lab, results, *arms) as sweep:
        sweep.start()
        sweep.running(1)
        sweep.kill()
        for file in results.glob(f"{FILE}*"):
            file.unlink()
        with Store(results / FILE) as store:
            [run] = results.glob("runs/*")
            gather(store, run, judge)
        sweep.start()
        sweep.hear("followed again", times=4)
        gate.touch()
        assert sweep.ended() == 0, sweep.said[-3000:]
        assert {state for _, _, state in stands(results)} == {"ok"}
        assert (len(order(results)), len(sweep.attempts())) == (4, 4)


FAULTS = named(
    arms_take_turns,
    a_part_fails,
    the_driver_is_killed_and_a_group_cancelled,
    the_store_is_lost_while_a_group_goes_on,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_turns(fault: str, scenario) -> None:
    scenario(fault)
