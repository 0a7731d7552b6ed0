"""Faults of Slurm's own daemons and nodes under a sweep: nothing lost, nothing run twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from infx.launch.lab import LOW, processes
from tests.launch.lab_fixture import Lab, running
from tests.launch.slurm import bench
from tests.launch.slurm.driven import driven, program
from tests.launch.slurm.scenarios import named
from tests.store.tiny_plans import job

pytestmark = pytest.mark.slow

FOREIGN = "sbatch --parsable -J foreign -o /dev/null"


def a_controller_crashes_after_a_submit(_: Lab, folder: Path) -> None:
    """Killed 3 s after six submits it forgets some, and gives their ids to others' jobs."""
    gate = folder / "gate"
    jobs = [job(n, limit_s=60 + 60 * n, gate=str(gate)) for n in range(6)]  # six submits
    with running() as lab, driven(lab, folder / "r", *jobs, exclusive=True) as sweep:
        sweep.start()
        ids = {attempt.scheduler_id for attempt in sweep.launched(6)}
        sweep.running(2)
        lab.kill("slurmctld")
        lab.start("slurmctld")
        foreign = {lab.run(f"{FOREIGN} --wrap 'sleep 30'") for _ in range(8)}
        assert foreign & ids, "it has forgotten nothing: no fault"
        gate.touch()
        assert sweep.ended() == 0
        sweep.check(*["ok"] * 12)
        ends = bench.outcomes(folder / "r")
        assert {outcome for _, outcome, _ in ends} <= {"ok", "void"}
        assert sorted(outcome for _, outcome, _ in ends).count("ok") == 6
        assert set(lab.run("squeue -h -t all -n foreign -o %T").split()) <= {"RUNNING", "PENDING"}


def a_controller_loses_its_state(_: Lab, folder: Path) -> None:
    """It has forgotten a running job and ends it: what it had measured stays, the rest is run."""
    with running() as lab, driven(lab, folder / "r", job(0, points=8, seconds=1.5)) as sweep:
        sweep.start()
        sweep.hear("c1: measured")
        _forget_everything(lab)
        assert sweep.ended() == 0
        sweep.check(*["ok"] * 8)
        assert "suspect: Slurm has no job of its name" in sweep.said
        assert bench.outcomes(folder / "r")[-1][1:] == ("ok", "")


def _forget_everything(lab: Lab) -> None:
    lab.kill("slurmctld")
    for path in (lab.folder / "state").glob("*"):
        if path.is_file():
            path.unlink()
    lab.start("slurmctld")


def a_controller_is_away_while_jobs_run(_: Lab, folder: Path) -> None:
    """Each command takes 19 s to fail; a job that ends meanwhile is seen when it is back."""
    gate = folder / "gate"
    with running() as lab, driven(lab, folder / "r", job(0, gate=str(gate))) as sweep:
        sweep.start()
        sweep.running()
        lab.kill("slurmctld")
        gate.touch()
        sweep.hear("does not answer: nothing is concluded from that")
        assert bench.states(folder / "r") == ["pending", "pending"]
        lab.start("slurmctld")
        sweep.hear("answers again")
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "ok", "")]


def a_controller_goes_away_at_the_submit(_: Lab, folder: Path) -> None:
    """sbatch finds no controller: surely not submitted, offered again."""
    with running() as lab:
        crash = f"[[ $1 != --parsable || -e {folder}/mark ]] || {{ touch {folder}/mark; kill -9 "
        crash += f"{lab.pid('slurmctld')}; sleep 0.2; }}"
        fake = program(folder / "bin", "sbatch", f'{crash}\nexec {_real("sbatch")} "$@"')
        with driven(lab, folder / "r", job(0), programs=fake) as sweep:
            sweep.start()
            sweep.hear("not accepted yet: Unable to contact slurm controller")
            lab.start("slurmctld")
            assert sweep.ended() == 0
            sweep.check("ok", "ok")
            assert bench.outcomes(folder / "r") == [(1, "ok", "")]


def no_controller_at_the_start(_: Lab, folder: Path) -> None:
    with running() as lab, driven(lab, folder / "r", job(0)) as sweep:
        lab.kill("slurmctld")
        sweep.start()
        assert sweep.ended() == 3
        assert "InfraError scheduler-down: the scheduler of cluster 'lab' does not" in sweep.said
        assert not list(folder.glob("r/runs/*"))


def a_node_dies(_: Lab, folder: Path) -> None:
    """slurmd, its step and the job are killed: another node, after the scheduler's timeout."""
    gate = folder / "gate"
    with running() as lab, driven(lab, folder / "r", job(0, gate=str(gate))) as sweep:
        sweep.start()
        sweep.running()
        [attempt] = sweep.launched(1)
        node = lab.job(attempt.scheduler_id)["NodeList"]
        _kill_node(lab, node)
        sweep.running(2)
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "infra", "node-failed"), (2, "ok", "")]
        [script] = folder.glob("r/runs/*/batches/*-a2/job.sh")
        assert f"#SBATCH --exclude={node}\n" in script.read_text()


def _kill_node(lab: Lab, node: str) -> None:
    lab.kill(f"slurmd-{node}")
    cluster = lab.state.place.cluster
    jobs = [
        pid
        for pid in processes.belonging(lab.state.spec.conf, cluster)
        if f"SLURMD_NODENAME={node}".encode() in _read(pid, "environ").split(b"\0")
    ]
    parents = [int(_read(pid, "stat").rpartition(b")")[2].split()[1]) for pid in jobs]
    steps = [pid for pid in parents if _read(pid, "comm").startswith(b"slurmstepd")]
    assert steps
    processes.kill([*steps, *jobs])


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def a_slurmd_restarts(_: Lab, folder: Path) -> None:
    gate, where = folder / "gate", ("--nodelist=node3",)
    with (
        running() as lab,
        driven(lab, folder / "r", job(0, gate=str(gate)), directives=where) as sweep,
    ):
        sweep.start()
        sweep.running()
        lab.kill("slurmd-node3")
        time.sleep(3)
        lab.start("slurmd-node3")
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "ok", "")]


def a_job_is_preempted(_: Lab, folder: Path) -> None:
    """A job of another partition takes its node; the new attempt waits for it."""
    gate, where = folder / "gate", ("--nodelist=node2", "--gres=gpu:8")
    jobs = job(0, gate=str(gate))
    with (
        running() as lab,
        driven(lab, folder / "r", jobs, partition=LOW, directives=where) as sweep,
    ):
        sweep.start()
        sweep.running()
        lab.run(f"{FOREIGN} -w node2 --gres=gpu:8 --wrap 'sleep 3'")
        sweep.running(2)
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "infra", "preempted"), (2, "ok", "")]


def a_node_is_drained(_: Lab, folder: Path) -> None:
    """Before: its jobs wait and say so, others go on. While a job runs there: nothing happens."""
    gate, drain = folder / "gate", "scontrol update nodename=node4 reason=test state="
    where = ("--nodelist=node4",)
    with (
        running() as lab,
        driven(lab, folder / "r", job(0, gate=str(gate)), directives=where) as sweep,
        driven(lab, folder / "s", job(1)) as other,
    ):
        lab.run(f"{drain}drain")
        sweep.start()
        sweep.hear("UnavailableNodes:node4")
        other.finish()
        other.check("ok", "ok")
        lab.run(f"{drain}resume")
        sweep.running()
        lab.run(f"{drain}drain")
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "ok", "")]


def an_administrator_requeues_and_holds(lab: Lab, folder: Path) -> None:
    gate = folder / "gate"
    with driven(lab, folder / "r", job(0, gate=str(gate)), directives=("--hold",)) as sweep:
        sweep.start()
        sweep.hear("held: scontrol release lets it go (JobHeldUser)")
        [attempt] = sweep.launched(1)
        lab.run(f"scontrol release {attempt.scheduler_id}")
        sweep.running()
        refused = lab.ask(f"scontrol requeue {attempt.scheduler_id}")
        assert refused.returncode, "it would run again under its id"
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "ok", "")]


def _real(name: str) -> str:
    from infx.launch.lab import packages

    return packages.find(name)


FAULTS = named(
    a_node_dies,
    a_controller_goes_away_at_the_submit,
    a_controller_is_away_while_jobs_run,
    no_controller_at_the_start,
    a_controller_crashes_after_a_submit,
    a_controller_loses_its_state,
    a_job_is_preempted,
    a_node_is_drained,
    a_slurmd_restarts,
    an_administrator_requeues_and_holds,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, scenario: Callable[[str], None]) -> None:
    scenario(fault)
