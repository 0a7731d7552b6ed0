"""What people do to a sweep on a real Slurm: cancel, interrupt, hang up, ask for the impossible."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.domain.plan import Job
from tests.launch.lab_fixture import Lab, running
from tests.launch.slurm import bench
from tests.launch.slurm.driven import driven
from tests.launch.slurm.scenarios import named
from tests.store.tiny_plans import job

pytestmark = pytest.mark.slow

OUTSIDE = "cancelled:cancelled-outside"


def somebody_cancels(lab: Lab, folder: Path) -> None:
    """scancel of a running and of a pending job: nothing is tried again, evidence is kept."""
    jobs = [job(0, behave="hang"), job(1, behave="hang"), job(2)]
    with driven(lab, folder / "r", *jobs, jobs_at_once=1) as sweep:
        sweep.start()
        running, pending, _ = sweep.launched(3)
        [attempt] = sweep.running()
        lab.run(f"scancel {running.scheduler_id} {pending.scheduler_id}")
        assert sweep.ended() == 0
        sweep.check(*[OUTSIDE] * 4, "ok", "ok")
        assert (attempt / "result.json").exists()
        assert len(list(attempt.glob("points/*/point.json"))) == 2
        assert (1, "cancelled", "cancelled-outside") in bench.outcomes(folder / "r")
        assert len(bench.outcomes(folder / "r")) == 3


def a_dependency_fails(lab: Lab, folder: Path) -> None:
    """--kill-on-invalid-dep=yes: Slurm ends the job, infx tells why."""
    failed = lab.ask("sbatch --parsable --wait -J foreign -o /dev/null --wrap 'exit 3'").stdout
    after = (f"--dependency=afterok:{failed.strip()}",)
    with driven(lab, folder / "r", job(0), directives=after) as sweep:
        sweep.finish()
        sweep.check(*["failed:never-scheduled"] * 2)
        assert "did not end as it must (DependencyNeverSatisfied)" in sweep.said


def a_job_can_never_start(_: Lab, folder: Path) -> None:
    """The partition's limit is lowered under the job's while it waits: ended with the reason."""
    with running() as lab, driven(lab, folder / "r", job(0), directives=("--hold",)) as sweep:
        sweep.start()
        sweep.hear("JobHeldUser")
        [attempt] = sweep.launched(1)
        lab.run("scontrol update PartitionName=gpu MaxTime=1")
        lab.run(f"scontrol release {attempt.scheduler_id}")
        assert sweep.ended() == 0
        sweep.check(*["failed:never-scheduled"] * 2)
        assert "its time limit is over the partition's (PartitionTimeLimit)" in sweep.said


def a_terminal_closes(lab: Lab, folder: Path) -> None:
    """SIGHUP: the jobs go on, and the run is followed again from where it is."""
    gate = folder / "gate"
    jobs = [job(n, gate=str(gate)) for n in range(2)]
    with driven(lab, folder / "r", *jobs) as sweep:
        sweep.start()
        sweep.running(2)
        sweep.send(signal.SIGHUP)
        assert sweep.ended() == 130
        assert "let go: the jobs go on; infx resume" in sweep.said
        gate.touch()
        sweep.finish()
        sweep.check(*["ok"] * 4)
        assert bench.outcomes(folder / "r") == [(1, "ok", "")] * 2


def jobs_end_without_a_driver(lab: Lab, folder: Path) -> None:
    """Killed while they run; they have ended when the run is taken up again."""
    gate = folder / "gate"
    jobs = [job(n, gate=str(gate)) for n in range(2)]
    with driven(lab, folder / "r", *jobs) as sweep:
        sweep.start()
        attempts = sweep.running(2)
        sweep.kill()
        gate.touch()
        while not all((attempt / "result.json").exists() for attempt in attempts):
            time.sleep(0.1)
        sweep.finish()
        sweep.check(*["ok"] * 4)
        assert bench.outcomes(folder / "r") == [(1, "ok", "")] * 2


def one_interrupt(lab: Lab, folder: Path) -> None:
    """What was measured stays, the rest is cancelled with its evidence."""
    with driven(lab, folder / "r", job(0), job(1, behave="hang")) as sweep:
        sweep.start()
        sweep.hear("tiny.s1.c2: measured")
        sweep.running(2)
        sweep.send(signal.SIGINT)
        assert sweep.ended() == 130
        sweep.check("ok", "ok", "cancelled", "cancelled")
        assert len(list(folder.glob("r/runs/*/jobs/*/a1/result.json"))) == 2


def two_interrupts(_: Lab, folder: Path) -> None:
    """Nothing is waited for; the job that was cancelled then is run again by the next drive."""
    gate = folder / "gate"
    stubborn = job(0, behave="stubborn", gate=str(gate))
    with running() as lab, driven(lab, folder / "r", stubborn) as sweep:
        lab.run(f"sed -i s/KillWait=30/KillWait=3/ {lab.conf} && scontrol reconfigure")
        sweep.start()
        sweep.running()
        sweep.send(signal.SIGINT)
        sweep.hear("stopping: ")
        sweep.send(signal.SIGINT)
        assert sweep.ended(20) == 130
        sweep.start()
        sweep.running(2)
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "void", ""), (2, "ok", "")]


def a_run_without_a_driver_is_cancelled(lab: Lab, folder: Path) -> None:
    with driven(lab, folder / "r", *[job(n, behave="hang") for n in range(2)]) as sweep:
        sweep.start()
        attempts = sweep.running(2)
        sweep.kill()
        sweep.start("cancel=1")
        assert sweep.ended() == 130
        sweep.check(*["cancelled"] * 4)
        assert all((attempt / "result.json").exists() for attempt in attempts)


def a_canary_fails(lab: Lab, folder: Path) -> None:
    """The cheapest job goes first; when it fails no other is submitted."""
    jobs = [job(0, points=1, behave="fail"), job(1), job(2)]
    with driven(lab, folder / "r", *jobs) as sweep:
        sweep.finish("canary=1")
        assert len(sweep.attempts()) == len(sweep.queue()) == 1
        assert bench.states(folder / "r") == [
            "failed:server-died",
            *["skipped:canary-failed"] * 4,
        ]


def a_canary_succeeds(lab: Lab, folder: Path) -> None:
    with driven(lab, folder / "r", job(0, points=1), job(1), job(2)) as sweep:
        sweep.finish("canary=1")
        sweep.check(*["ok"] * 5)
        first, *others = sweep.attempts()
        assert not first.batch.endswith("-array")
        assert [attempt.batch.endswith("-array") for attempt in others] == [True, True]


def a_failure_ends_the_entry(lab: Lab, folder: Path) -> None:
    """--fail-fast: what runs, what is queued and what was not submitted all stop."""
    gate = folder / "gate"
    first = job(0, behave="fail", gate=str(gate))
    jobs = [first, *[job(n, behave="hang") for n in range(1, 4)]]
    with driven(lab, folder / "r", *jobs, jobs_at_once=2, submit_limit=3) as sweep:
        sweep.start("fail_fast=1")
        sweep.running(2)
        gate.touch()
        assert sweep.ended() == 0
        found = bench.states(folder / "r")
        assert found[:2] == ["failed:server-died"] * 2
        assert set(found[2:]) == {"cancelled", "skipped:stopped-early"}
        assert len(sweep.attempts()) == 3


def a_failure_leaves_the_other_entry_alone(lab: Lab, folder: Path) -> None:
    """Both entries are in one array: running and waiting tasks of the one are stopped, no other."""
    gate = folder / "gate"
    other = [entry(job(n, points=1, gate=str(gate)), "other") for n in range(10, 14)]
    bad = [job(0, points=1, behave="fail"), *[job(n, points=1, behave="hang") for n in (1, 2, 3)]]
    mixed = [bad[0], other[0], bad[1], *other[1:], *bad[2:]]
    with driven(lab, folder / "r", *mixed, jobs_at_once=3) as sweep:
        sweep.start("fail_fast=1")
        sweep.hear("server-died")
        sweep.hear("cancelled")
        gate.touch()
        assert sweep.ended() == 0
        found = Counter(bench.states(folder / "r"))
        assert found == {"failed:server-died": 1, "ok": 4, "cancelled": 3}, sweep.said[-3000:]
        assert len({attempt.batch for attempt in sweep.attempts()}) == 1


def entry(made: Job, name: str) -> Job:
    """Return the job as one of another matrix entry."""
    return replace(made, points=tuple(replace(point, entry=name) for point in made.points))


FAULTS = named(
    a_failure_leaves_the_other_entry_alone,
    two_interrupts,
    somebody_cancels,
    a_dependency_fails,
    a_job_can_never_start,
    a_terminal_closes,
    jobs_end_without_a_driver,
    one_interrupt,
    a_run_without_a_driver_is_cancelled,
    a_canary_fails,
    a_canary_succeeds,
    a_failure_ends_the_entry,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, scenario: Callable[[str], None]) -> None:
    scenario(fault)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such partition": ({"partition": "nope"}, "there is no partition 'nope'; there are"),
    "more GPUs than a node": ({"directives": ["--gres=gpu:9"]}, "node configuration is not"),
    "unknown option": ({"directives": ["--no-such=1"]}, "unrecognized option '--no-such=1'"),
    "no such node": ({"directives": ["--nodelist=node77"]}, "Invalid node name specified"),
    "no such feature": ({"directives": ["--constraint=no"]}, "Invalid feature specification"),
    "no such reservation": ({"directives": ["--reservation=no"]}, "reservation is invalid"),
    "time limit over the partition's": (
        {"limit_s": 90_000},
        "a job asks for 1505 min (its limit and 5 min to end in); partition",
    ),
    "script too large": (
        {"directives": ["--comment=" + "x" * 5_000_000]},
        "takes scripts of at most 4194304 bytes",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_cluster_refuses_makes_no_run(
    what: str,
    lab: Lab,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(lab.conf))
    site, sentence = REFUSED[what]
    limit_s = site.pop("limit_s", 60)
    bench.prepare(tmp_path, job(0, limit_s=limit_s), **site)
    assert bench.main([str(tmp_path)]) == 2
    said = capsys.readouterr().out
    assert said.startswith("UsageError cluster-refuses: configs/clusters.yaml:1:1: cluster 'lab'")
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.glob("runs/*"))
    assert "infx-test" not in lab.run("squeue -h -t all -o %j")
