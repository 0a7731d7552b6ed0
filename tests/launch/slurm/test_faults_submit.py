"""Faults around the submit on a real Slurm: kills, lost answers, limits, folders, accounting."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from infx.launch import lab as labs
from infx.launch.lab import packages
from tests.launch.lab_fixture import Lab, running, until
from tests.launch.slurm import bench
from tests.launch.slurm.driven import driven, program
from tests.launch.slurm.scenarios import named
from tests.store.tiny_plans import job

pytestmark = pytest.mark.slow

KILLS = 10
TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
ONCE = [(1, "ok", "")]


def ten_kills(lab: Lab, folder: Path) -> None:
    """kill -9 of infx at ten random moments of a sweep that submits all the time."""
    dice = random.Random(20261129)
    jobs = [job(n, points=1, limit_s=60 + n, seconds=1.0) for n in range(24)]  # 24 submits
    with driven(lab, folder / "r", *jobs, submit_limit=3) as sweep:
        for number in range(KILLS):
            seen = sweep.said.count(": submitted as ")
            sweep.start()
            if number % 2 == 0:  # else at any moment from its start on
                sweep.hear(": submitted as ", times=seen + 1)
            time.sleep(dice.uniform(0, 1.5))
            sweep.kill()
        assert sweep.process
        assert sweep.process.returncode == -9, "it ended before the last kill"
        assert len(sweep.attempts()) > 3, "it was never killed while it ran"
        sweep.finish()
        sweep.check(*["ok"] * 24)
        ends = bench.outcomes(folder / "r")
        assert {outcome for _, outcome, _ in ends} <= {"ok", "void"}
        assert set(sweep.queue().values()) == {1}, "a name was submitted twice"


def killed_before_sbatch(lab: Lab, folder: Path) -> None:
    """The intent is written, nothing was submitted: a new attempt, once that is sure."""
    with driven(
        lab, folder / "r", job(0), job(1), programs=_killing(folder, "kill", "real")
    ) as sweep:
        sweep.start()
        (folder / "pid").write_text(str(sweep.process.pid if sweep.process else 0))
        assert sweep.ended() == -9
        assert [attempt.scheduler_id for attempt in sweep.attempts()] == ["", ""]
        sweep.finish()
        sweep.check(*["ok"] * 4)
        assert [end[:2] for end in bench.outcomes(folder / "r")] == [(1, "void"), (2, "ok")] * 2


def killed_after_sbatch(lab: Lab, folder: Path) -> None:
    """Submitted, and nobody wrote the id down: found by its name."""
    with driven(
        lab, folder / "r", job(0), job(1), programs=_killing(folder, "real", "kill")
    ) as sweep:
        sweep.start()
        (folder / "pid").write_text(str(sweep.process.pid if sweep.process else 0))
        assert sweep.ended() == -9
        assert [attempt.scheduler_id for attempt in sweep.attempts()] == ["", ""]
        sweep.finish()
        sweep.check(*["ok"] * 4)
        assert bench.outcomes(folder / "r") == ONCE * 2
        assert list(sweep.queue().values()) == [2]  # tasks of one array


def _killing(folder: Path, *order: str) -> Path:
    """An sbatch that kills its infx once, before or after it submits."""
    kill = f"[[ -e {folder}/mark ]] || {{ touch {folder}/mark; kill -9 $(<{folder}/pid); exit; }}"
    words = {"kill": kill, "real": f'{_sbatch()} "$@"'}
    wait = f"until [[ -s {folder}/pid ]]; do sleep 0.05; done"
    return program(folder / "bin", "sbatch", "\n".join([_TEST_ONLY, wait, *map(words.get, order)]))


def an_answer_is_lost(lab: Lab, folder: Path) -> None:
    """sbatch submits and says that it does not know: found by name, not submitted again."""
    lose = f'{_sbatch()} "$@" >/dev/null; echo "{TIMED_OUT}" >&2; exit 1'
    fake = program(folder / "bin", "sbatch", f"{_TEST_ONLY}\n{lose}")
    with driven(lab, folder / "r", job(0), job(1), programs=fake) as sweep:
        sweep.finish()
        sweep.check(*["ok"] * 4)
        assert bench.outcomes(folder / "r") == ONCE * 2
        assert list(sweep.queue().values()) == [2]
        assert f"-array: {TIMED_OUT.split('failed: ')[1]}" in sweep.said


def an_interrupted_submit(lab: Lab, folder: Path) -> None:
    """Ctrl-C twice while sbatch hangs: what it had submitted is cancelled, too."""
    hang = f'{_sbatch()} "$@"; touch {folder}/sent; sleep 60'
    fake = program(folder / "bin", "sbatch", f"{_TEST_ONLY}\n{hang}")
    with driven(lab, folder / "r", job(0, behave="hang"), programs=fake) as sweep:
        sweep.start()
        until((folder / "sent").exists, 60, lambda: sweep.said)
        for _ in range(2):
            sweep.send(signal.SIGINT)
            time.sleep(0.3)
        assert sweep.ended() == 130
        left = "squeue -h -r -o '%j %T'"
        until(lambda: not lab.run(f"{left} -n {','.join(sweep.queue())}"), 60, lambda: sweep.said)


def a_submit_arrives_late(lab: Lab, folder: Path) -> None:
    """It reaches Slurm when infx has given it up: the claim keeps it from measuring."""
    late = f"""
if [[ ! -e {folder}/mark ]]; then
  touch {folder}/mark
  setsid bash {folder}/late.sh </dev/null >{folder}/late.log 2>&1 &
  echo "{TIMED_OUT}" >&2
  exit 1
fi
{_sbatch()} "$@"
"""
    wait = f"for _ in {{1..900}}; do [[ -e {folder}/now ]] && break; sleep 0.1; done"
    submit = f"{_sbatch()} --parsable job.sh >{folder}/tmp && mv {folder}/tmp {folder}/late"
    (folder / "late.sh").write_text(f"{wait}\n{submit}\n")
    fake = program(folder / "bin", "sbatch", f"{_TEST_ONLY}\n{late}")
    gate = folder / "gate"
    with driven(lab, folder / "r", job(0, gate=str(gate)), programs=fake) as sweep:
        sweep.start()
        sweep.running(2)  # one claim is infx's own
        (folder / "now").touch()
        until((folder / "late").exists, 60, lambda: list(folder.iterdir()))
        lab.await_job((folder / "late").read_text().strip(), "FAILED")
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert [end[:2] for end in bench.outcomes(folder / "r")] == [(1, "void"), (2, "ok")]


def the_batches_folder_goes_away(lab: Lab, folder: Path) -> None:
    """The log of a job has no folder: Slurm cannot launch it, and another attempt can."""
    where = ("--begin=now+5",)
    with driven(lab, folder / "r", job(0), directives=where) as sweep:
        sweep.start()
        sweep.launched(1)
        shutil.rmtree(next(folder.glob("r/runs/*/batches")))
        assert sweep.ended() == 0
        sweep.check("ok", "ok")
        assert bench.outcomes(folder / "r") == [(1, "infra", "launch-failed"), (2, "ok", "")]
        assert "its log's folder or working folder is missing or not writable" in sweep.said


def a_file_is_in_the_way(lab: Lab, folder: Path) -> None:
    """Then infx cannot write another attempt either, and ends with what it cannot write."""
    with driven(lab, folder / "r", job(0), directives=("--begin=now+5",)) as sweep:
        sweep.start()
        sweep.launched(1)
        batches = next(folder.glob("r/runs/*/batches"))
        shutil.rmtree(batches)
        batches.write_text("")
        assert sweep.ended() == 3
        assert "InfraError results-unwritable: " in sweep.said
        assert bench.outcomes(folder / "r") == [(1, "infra", "launch-failed")]
        batches.unlink()
        sweep.finish()
        sweep.check("ok", "ok")


def the_run_is_deleted(lab: Lab, folder: Path) -> None:
    with driven(lab, folder / "r", job(0), directives=("--begin=now+5",)) as sweep:
        sweep.start()
        [attempt] = sweep.launched(1)
        shutil.rmtree(next(folder.glob("r/runs/*")))
        assert sweep.ended() == 3
        assert "it is gone" in sweep.said
        assert lab.job(attempt.scheduler_id)["JobState"] == "FAILED"


def _sbatch() -> str:
    return packages.find("sbatch")


_TEST_ONLY = f'[[ $1 == --parsable ]] || exec {_sbatch()} "$@"'
"""What an imitated sbatch leaves to the real one."""


# With accounting


def limits_and_accounts(_: Lab, folder: Path) -> None:
    """One lab with slurmdbd, one thing after another."""
    with running(accounting=True) as lab:
        for what in (
            _too_many_jobs,
            _unknown_account,
            _cancelled_by_whom,
            _no_slurmdbd,
            _only_accounting_remembers,
        ):
            started = time.monotonic()
            what(lab, folder / what.__name__)
            print(f"{what.__name__}: {time.monotonic() - started:.1f} s")


def _too_many_jobs(lab: Lab, folder: Path) -> None:
    """A QOS takes two jobs at once: back-pressure, and all are measured in the end."""
    labs.add_qos(lab.folder, "two", {"MaxSubmitJobsPerUser": "2"})
    jobs = [job(n, points=1) for n in range(6)]
    with driven(lab, folder, *jobs, qos="two") as sweep:
        sweep.finish()
        sweep.check(*["ok"] * 6)
        assert bench.outcomes(folder) == ONCE * 6
        assert "not accepted yet: QOSMaxSubmitJobPerUserLimit" in sweep.said


def _unknown_account(lab: Lab, folder: Path) -> None:
    for site, said in (
        ({"account": "nobody"}, "Invalid account or account/partition combination"),
        ({"qos": "nope"}, "Invalid qos specification"),
    ):
        with driven(lab, folder / next(iter(site)), job(0), **site) as sweep:
            sweep.start()
            assert sweep.ended() == 2
            assert said in sweep.said
            assert not list(sweep.results.glob("runs/*"))


def _cancelled_by_whom(lab: Lab, folder: Path) -> None:
    """Told where there is the time to ask: accounting lags a moment behind the queue."""
    with driven(lab, folder, job(0, behave="mute", gate=str(folder / "gate"))) as sweep:
        sweep.start()
        sweep.running()
        lab.run(f"scancel {sweep.launched(1)[0].scheduler_id}")
        assert sweep.ended() == 0
        sweep.check(*["cancelled:cancelled-outside"] * 2)
        assert "cancelled by user " in sweep.said


def _no_slurmdbd(lab: Lab, folder: Path) -> None:
    """Jobs run and end without it; scontrol tells the exit code of one that crashed."""
    gate = folder / "gate"
    jobs = [job(0, gate=str(gate)), job(1, points=1, behave="crash", seconds=2)]
    with driven(lab, folder, *jobs, retries=0) as sweep:
        sweep.start()
        sweep.running(2)
        lab.kill("slurmdbd")
        gate.touch()
        assert sweep.ended() == 0
        sweep.check("ok", "ok", "failed:out-of-memory")
        lab.start("slurmdbd")


def _only_accounting_remembers(lab: Lab, folder: Path) -> None:
    """The queue has forgotten how a job ended that left no record: sacct tells."""
    with driven(lab, folder, job(0), job(1, points=1, behave="crash"), retries=0) as sweep:
        sweep.start()
        sweep.running(2)
        sweep.kill()
        told = "sacct -X -n -P -D -S now-1hour -o State,JobName | sort | uniq | grep "
        run = next(folder.glob("runs/*")).name
        wanted = ["COMPLETED", "FAILED"]
        until(lambda: lab.ask(f"{told}{run}").stdout.count("D|") >= 2, 30, lambda: told)
        assert all(state in lab.run(f"{told}{run}") for state in wanted)
        lab.stop("slurmctld")
        for path in (lab.folder / "state").glob("job_state*"):
            path.unlink()
        lab.start("slurmctld")
        assert not sweep.queue()
        sweep.finish()
        sweep.check("ok", "ok", "failed:out-of-memory")


FAULTS = named(
    limits_and_accounts,
    ten_kills,
    killed_before_sbatch,
    killed_after_sbatch,
    an_answer_is_lost,
    an_interrupted_submit,
    a_submit_arrives_late,
    the_batches_folder_goes_away,
    a_file_is_in_the_way,
    the_run_is_deleted,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, scenario: Callable[[str], None]) -> None:
    scenario(fault)
