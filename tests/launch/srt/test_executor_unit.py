"""The srt executor against a cluster whose answers are played."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.domain.plan import Job
from infx.domain.record import Attempt
from infx.job.spec import JobSpec
from infx.launch.executor import JobState, Order
from infx.launch.slurm.watch import Pace
from infx.launch.srt.executor import SrtExecutor
from infx.launch.transport import Answer
from infx.store import read_attempt, unique_name
from tests.launch.slurm.played import SILENCE, Clock, Played, Said, facts_text, queued
from tests.launch.srt import bench


def accepted(job: str = "7") -> str:
    return json.dumps({"status": "submitted", "slurm_job_id": job}) + "\n"


DOWN = Answer(
    1, "", "sbatch failed: sbatch: error: Unable to contact slurm controller (connect failure)"
)

LIMIT = Answer(
    1,
    "",
    "sbatch failed: sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
)


class Bench:
    """An executor, its clock, and the attempts of a run below a folder."""

    def __init__(self, folder: Path, *jobs: Job, host: str = "", **site: object) -> None:
        self.clock = Clock()
        self.transport = Played(host, scontrol=facts_text(), squeue="", mktemp="DRY-RUN")
        self.transport.answers |= {"--version": "srtctl 2.18.0\n", " apply ": accepted()}
        reached = {"ssh": host, "folder": "/shared/infx"} if host else {}
        self.executor = SrtExecutor(
            bench.cluster(**reached, **site),
            self.transport,
            pace=Pace(clock=self.clock),
            patience_s=60.0,
            clock=self.clock,
        )
        self.orders = [self._order(folder / "runs" / "r1", job) for job in jobs or (bench.job(),)]
        self.open: list[Order] = []

    def _order(self, run_dir: Path, job: Job) -> Order:
        name = unique_name("r1", job.job_id, 1)
        attempt = Attempt(run_id="r1", job_id=job.job_id, number=1, unique_name=name)
        folder = run_dir / "jobs" / job.name / "a1"
        folder.mkdir(parents=True)
        return Order(attempt=attempt, job=job, folder=folder)

    def submit(self) -> dict[str, str]:
        orders = self.executor.arrange(self.orders, self.open)
        told = self.executor.submit(orders)
        for order in (order for order in orders if order.name in told):
            known = replace(order.attempt, scheduler_id=told[order.name])
            self.open.append(replace(order, attempt=known))
        return dict(told)

    def look(self, after_s: float = 100.0) -> list[JobState]:
        self.clock.now_s += after_s
        states = self.executor.poll(self.open)
        return [states[order.name] for order in self.open]

    def queue(self, state: str, reason: str = "None") -> None:
        lines = [queued("7", state, order.name, reason) for order in self.open]
        self.transport.answers["squeue"] = "".join(lines)

    def asked(self, word: str) -> str:
        return next(script for script in self.transport.asked if word in script)


def test_what_can_be_known_is_asked_before_a_run(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.transport.answers["mktemp"] = Answer(0, "", "WARNING srtslurm.yaml: unknown key, ignored")
    jobs = [bench.job(0), bench.job(1)]
    made.executor.check(jobs)
    assert made.transport.count("dry-run") == 1  # of one engine
    assert made.executor.notices() == ["srtctl: WARNING srtslurm.yaml: unknown key, ignored"]
    assert not made.transport.count(" apply ")


@pytest.mark.parametrize(
    ("word", "said", "code"),
    [
        ("--version", Answer(127, "", "sh: srtctl: not found"), "srtctl-missing"),
        ("--version", Answer(2, "", "usage: srtctl"), "srtctl-old"),
        ("scontrol", Answer(127, "", "scontrol: not found"), "slurm-missing"),
        ("scontrol", Answer(1, "", "slurm_load_ctl_conf error"), "scheduler-down"),
        ("--version", SILENCE, "no-answer"),
        ("mktemp", Answer(1, "", "Error: Preflight failed\n- model.path: gone"), "srt-refused"),
    ],
)
def test_a_cluster_that_will_not_do(tmp_path: Path, word: str, said: Said, code: str) -> None:
    made = Bench(tmp_path)
    made.transport.answers[word] = said
    with pytest.raises((UsageError, InfraError)) as raised:
        made.executor.check([bench.job()])
    assert raised.value.code == code


def test_a_plan_that_recipes_cannot_say(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    with pytest.raises(UsageError, match="srt-slurm has no engine llamacpp") as raised:
        made.executor.check([bench.job(framework="llamacpp")])
    assert raised.value.code == "srt-unsupported"
    assert "configs/clusters.yaml:3:1: cluster 'far'" in str(raised.value)
    job = bench.job()
    only = replace(job, points=(replace(job.points[0], mode="evaluation"),))
    with pytest.raises(UsageError, match="no throughput point"):
        made.executor.check([only])


def test_the_preview_is_the_exact_recipe(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    [shown] = made.executor.scripts(made.orders)
    made.submit()
    assert (made.orders[0].folder / "srt.yaml").read_text() == shown
    assert f"name: {made.orders[0].name}\n" in shown


def test_a_job_is_submitted_under_its_name_and_followed(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    name = made.orders[0].name
    assert made.submit() == {name: "7"}
    assert made.open[0].attempt.batch == name
    assert f"--tags infx,{name} --json" in made.asked(" apply ")
    made.queue("PENDING", "Resources")
    assert made.look()[0].phase == "queued"
    made.queue("RUNNING")
    assert made.look()[0].phase == "running"
    assert f"--name={name}" in made.asked("squeue")
    made.transport.answers["squeue"] = SILENCE
    for _ in range(2):
        assert made.look()[0].phase == "running"  # no answer changes nothing, and is told once
    assert made.executor.notices() == [
        "the scheduler of far does not answer: nothing is concluded from that"
    ]


@pytest.mark.parametrize("said", [DOWN, LIMIT])
def test_a_limit_holds_back_and_the_rest_waits(tmp_path: Path, said: Answer) -> None:
    made = Bench(tmp_path, bench.job(0), bench.job(1))
    made.transport.answers[" apply "] = said
    assert made.submit() == {}
    assert made.transport.count(" apply ") == 1
    assert "once more in 15 s" in made.executor.notices()[0]
    assert made.submit() == {}
    assert made.transport.count(" apply ") == 1
    made.transport.answers[" apply "] = accepted()
    made.clock.now_s += 15
    assert len(made.submit()) == 2


def test_jobs_at_once(tmp_path: Path) -> None:
    made = Bench(tmp_path, bench.job(0), bench.job(1), jobs_at_once=1)
    assert len(made.submit()) == 1
    assert made.executor.arrange(made.orders, made.open) == []


def test_a_refused_recipe_ends_at_once(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    error = json.dumps({"status": "error", "error": "roles.agg: unknown field"})
    made.transport.answers[" apply "] = Answer(1, error, "")
    assert made.submit() == {made.orders[0].name: ""}
    [state] = made.look()
    assert (state.phase, state.code) == ("ended", "srt-refused")
    assert state.sentence == "roles.agg: unknown field"


def test_a_job_of_evaluations_alone_is_not_submitted(tmp_path: Path) -> None:
    job = bench.job()
    evaluations = tuple(replace(point, mode="evaluation") for point in job.points)
    made = Bench(tmp_path, replace(job, points=evaluations))
    made.submit()
    assert made.look()[0].code == "srt-unsupported"
    assert not made.transport.count(" apply ")


def test_more_jobs_than_one_are_cancelled(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.transport.answers[" apply "] = accepted("7") + accepted("8")
    made.submit()
    assert made.look()[0].code == "srt-refused"
    assert f"--name={made.orders[0].name}" in made.asked("scancel")


def test_an_unclear_submit_is_looked_for_and_then_given_up_for_good(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.transport.answers[" apply "] = SILENCE
    assert made.submit() == {made.orders[0].name: ""}
    assert "looking for" in made.executor.notices()[0]
    assert made.look()[0].phase == "suspect"
    made.transport.answers["rmdir"] = Answer(1, "", "")
    assert made.look()[0].phase == "suspect"  # a job has come in between
    made.transport.answers["rmdir"] = ""
    [state] = made.look()
    assert (state.phase, state.void) == ("ended", True)


def test_a_lost_answer_is_found_by_name(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.transport.answers[" apply "] = SILENCE
    made.submit()
    made.queue("RUNNING")
    assert made.look()[0].scheduler_id == "7"


def test_outputs_that_do_not_show_are_waited_for(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.submit()
    made.queue("COMPLETED")
    assert made.look()[0].phase == "suspect"
    [state] = made.look()
    assert (state.phase, state.code) == ("ended", "job-lost")
    assert "its outputs folder is not there" in state.sentence


def test_what_srt_left_and_what_it_cannot_measure_are_records(tmp_path: Path) -> None:
    job = bench.job()
    points = (replace(job.points[0], mode="evaluation"), job.points[1])
    made = Bench(tmp_path, replace(job, points=points))
    made.submit()
    folder = made.orders[0].folder
    (folder / "srt" / "7").mkdir(parents=True)
    made.queue("COMPLETED")
    assert made.look()[0].phase == "suspect"  # a shared disk may show exports late
    [state] = made.look()
    assert (state.phase, state.code) == ("ended", "srt-no-export")
    found, _ = read_attempt(folder, tmp_path / "runs" / "r1", lambda record, _: record)
    assert [str(record.status) for record in found] == ["failed:srt-unsupported"]


def test_outputs_that_cannot_be_fetched_conclude_nothing(tmp_path: Path) -> None:
    made = Bench(tmp_path, host="login")
    made.submit()
    made.queue("RUNNING")
    made.look()
    made.queue("COMPLETED")

    def broken(*_: object, **__: object) -> None:
        raise InfraError("transfer-failed", "no route")

    made.transport.pull = broken  # type: ignore[method-assign]
    assert made.look()[0].phase == "running"
    assert "cannot be fetched: no route" in made.executor.notices()[-1]


def test_over_ssh_the_recipe_goes_there(tmp_path: Path) -> None:
    made = Bench(tmp_path, host="login")
    made.submit()
    [(source, target, names)] = made.transport.pushed
    assert source == made.orders[0].folder
    assert target == "/shared/infx/runs/r1/jobs/tiny.s1/a1"
    assert names == ["srt.yaml", "srt"]
    assert f"-o {target}/srt" in made.asked(" apply ")


def test_what_never_starts_is_cancelled_and_says_why(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.submit()
    made.queue("PENDING", "PartitionNodeLimit")
    assert made.look()[0].phase == "queued"
    assert not made.transport.count("scancel")  # a first reason may be stale
    made.look()
    assert made.transport.count("scancel")
    made.queue("CANCELLED")
    [state] = made.look()
    assert (state.phase, state.code) == ("ended", "never-scheduled")


def test_a_reason_that_passes_is_forgotten(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.submit()
    made.queue("PENDING", "PartitionNodeLimit")
    made.look()
    made.queue("RUNNING")
    made.look()
    made.queue("CANCELLED")
    assert made.look()[0].code == "cancelled-outside"


def test_a_job_that_is_given_up_with_its_outputs_is_cancelled(tmp_path: Path) -> None:
    """A controller that crashed may have forgotten a job that still runs."""
    made = Bench(tmp_path)
    made.submit()
    job = made.orders[0].folder / "srt" / "7"
    job.mkdir(parents=True)
    assert made.look()[0].phase == "suspect"
    [state] = made.look()
    assert (state.phase, state.code) == ("ended", "job-lost")
    assert f"--name={made.orders[0].name}" in made.asked("scancel")


def test_a_cancel_is_slurms_own(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    made.submit()
    made.look()
    made.executor.cancel(made.open)
    line = next(line for line in made.asked("scancel").splitlines() if line.startswith("scancel"))
    assert line == f'scancel --user="$user" --name={made.open[0].name}'


def test_the_spec_is_as_it_was(tmp_path: Path) -> None:
    spec = JobSpec(run_id="r", run_dir="/r", job=bench.job(), attempt=1, unique_name="n")
    assert Bench(tmp_path).executor.placed(spec) == spec
