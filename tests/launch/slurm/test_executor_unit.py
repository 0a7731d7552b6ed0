"""The Slurm executor against a cluster whose answers are played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.job import claim
from infx.job.spec import JobSpec
from infx.launch.slurm.executor import SlurmExecutor
from infx.launch.slurm.submission import SCRIPT, batch_dir
from infx.launch.transport import Answer
from tests.launch.slurm.executor_bench import Bench, finish, refuse
from tests.launch.slurm.played import SILENCE, Played, booked, cluster, facts_text, queued
from tests.launch.slurm.sample_batches import batch

FAILED = "sbatch: error: Batch job submission failed: "


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


# Before a run


def test_what_the_plan_needs_is_asked_of_the_cluster(bench: Bench) -> None:
    jobs = [order.job for order in batch(2).orders]
    bench.executor.check(jobs)
    assert bench.transport.count("--test-only") == 1  # of one shape


def test_a_partition_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no partition 'nope'"):
        Bench(tmp_path, partition="nope").executor.check([batch().orders[0].job])


@pytest.mark.parametrize(
    ("said", "refused"),
    [("Invalid qos specification", True), ("Socket timed out on send/recv operation", False)],
)
def test_what_sbatch_would_refuse_for_ever_is_refused_before(
    bench: Bench, said: str, refused: bool
) -> None:
    bench.transport.answers["--test-only"] = Answer(1, "", FAILED + said)
    jobs = [batch().orders[0].job]
    if not refused:
        bench.executor.check(jobs)
        return
    with pytest.raises(UsageError, match=r"clusters.yaml.*Invalid qos") as caught:
        bench.executor.check(jobs)
    assert caught.value.code == "cluster-refuses"


def test_the_scripts_are_shown_without_asking_anything(tmp_path: Path) -> None:
    bench = Bench(tmp_path, jobs_at_once=2)
    [script] = bench.executor.scripts(batch(3, run_dir=bench.run_dir).orders)
    assert "#SBATCH --array=0-2%2" in script
    assert str(bench.run_dir) in script
    assert bench.transport.asked == []


def spec(bench: Bench) -> JobSpec:
    order = batch(run_dir=bench.run_dir).orders[0]
    return JobSpec(
        run_id="r1", run_dir=str(bench.run_dir), job=order.job, attempt=1, unique_name=order.name
    )


def test_a_job_on_a_shared_folder_sees_the_same_paths(tmp_path: Path) -> None:
    bench = Bench(tmp_path, models={"hf:a/b": "/models/b"})
    placed = bench.executor.placed(spec(bench))
    assert placed.run_dir == str(bench.run_dir)
    assert placed.site.models == {"hf:a/b": "/models/b"}
    assert placed.site.point_limit_s == 1800


def test_over_ssh_the_run_lies_in_the_sites_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    assert bench.executor.placed(spec(bench)).run_dir == "/shared/infx/runs/r1"


def test_a_cluster_without_an_interpreter_is_not_prepared(tmp_path: Path) -> None:
    bare = SlurmExecutor(
        cluster(ssh="login", folder="/shared"), Played("login", test=Answer(1, "", ""))
    )
    with pytest.raises(UsageError, match="infx cluster prepare lab") as caught:
        bare.scripts(batch(run_dir=tmp_path / "runs" / "r1").orders)
    assert caught.value.code == "not-prepared"


# Submit


def test_an_array_is_submitted_and_each_task_has_its_id(bench: Bench) -> None:
    told = bench.submit(3)
    assert list(told.values()) == ["100_0", "100_1", "100_2"]
    [order, *_] = bench.open
    folder = Path(batch_dir(bench.run_dir, order.attempt.batch))
    assert "--array=0-2" in (folder / SCRIPT).read_text()
    assert (folder / "tasks").read_text() == "jobs/j0/a1\njobs/j1/a1\njobs/j2/a1\n"
    assert bench.transport.pushed == []


def test_over_ssh_the_files_are_brought_in_one_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit(2)
    [(source, target, names)] = bench.transport.pushed
    assert (source, target) == (bench.run_dir, "/shared/infx/runs/r1")
    assert names == ["jobs/j0/a1", "jobs/j1/a1", f"batches/{bench.open[0].attempt.batch}"]
    assert "/shared/infx/runs/r1/batches/" in bench.transport.asked[-1]


def test_files_that_cannot_be_brought_are_back_pressure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, host="login")

    def broken(*_: Any) -> None:
        raise InfraError("transfer-failed", "no space there")

    monkeypatch.setattr(bench.transport, "push", broken)
    assert bench.submit(2) == {}
    [told] = bench.executor.notices()
    assert "cannot be brought to login: no space there; once more in 15 s" in told
    assert bench.transport.count("sbatch") == 0
    assert bench.executor.arrange(batch(2, run_dir=bench.run_dir).orders, []) == []


def test_a_refusal_for_its_configuration_ends_the_order(bench: Bench) -> None:
    bench.transport.answers["--parsable"] = refuse(f"{FAILED}Invalid account")
    assert list(bench.submit(2).values()) == ["", ""]
    for state in bench.look():
        assert (state.phase, state.code, state.sentence) == (
            "ended",
            "submit-refused",
            "Invalid account",
        )
    assert bench.transport.count("squeue") == 0  # there is nothing to ask about


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\x1e"
        f"{FAILED}Job violates accounting/QOS policy (job submit limit)",
        f"{FAILED}Unable to contact slurm controller (connect failure)",
    ],
)
def test_limits_and_a_controller_that_is_down_are_back_pressure(tmp_path: Path, said: str) -> None:
    bench = Bench(tmp_path, largest_array=2)  # five batches, and one wait
    bench.transport.answers["--parsable"] = refuse(said)
    assert bench.submit(9) == {}
    [told] = bench.executor.notices()
    assert told.startswith("not accepted yet: ")
    assert told.endswith("once more in 15 s")
    assert bench.executor.arrange(batch(9).orders, []) == []


def test_a_lost_answer_is_looked_for_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, patience_s=1e6)
    bench.transport.answers["--parsable"] = SILENCE
    assert list(bench.submit(2).values()) == ["", ""]
    [state, _] = bench.look()
    assert state.phase == "suspect"
    name = bench.open[0].attempt.batch
    bench.transport.answers["squeue"] = queued("7_0", "RUNNING", name) + queued(
        "7_1", "PENDING", name, "Priority"
    )
    running, pending = bench.look()
    assert (running.phase, running.scheduler_id) == ("running", "7_0")
    assert (pending.phase, pending.scheduler_id) == ("queued", "7_1")
    assert "Priority" in pending.sentence


def test_what_a_site_said_of_an_unclear_submission_is_told(bench: Bench) -> None:
    bench.transport.answers["--parsable"] = refuse("sbatch: error: a project code, please")
    bench.submit()
    [told] = bench.executor.notices()
    assert "a project code, please" in told


# Follow


def test_an_end_needs_the_record_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path, patience_s=1e6)
    bench.submit()
    [order] = bench.open
    bench.queue("RUNNING")
    assert bench.look()[0].phase == "running"
    claim.take(order.folder, claim.Claim(by="job", scheduler_id="100"))
    bench.queue("COMPLETED")
    assert bench.look()[0].phase == "suspect"
    finish(order)
    assert bench.look()[0].phase == "ended"


def test_a_record_that_is_half_there_is_none(bench: Bench) -> None:
    bench.submit()
    bench.queue("COMPLETED")
    (bench.open[0].folder / "result.json").write_text('{"run_id": "r')
    assert bench.look()[0].code == "job-lost"


def test_silence_changes_nothing_and_is_told_once(bench: Bench) -> None:
    bench.submit()
    bench.queue("RUNNING")
    assert bench.look()[0].phase == "running"
    bench.transport.answers["squeue"] = SILENCE
    assert [bench.look()[0].phase for _ in range(3)] == ["running"] * 3
    assert bench.executor.notices() == [
        "the scheduler of lab does not answer: nothing is concluded from that"
    ]
    bench.queue("RUNNING")
    bench.look()
    bench.look()
    assert bench.executor.notices() == ["the scheduler of lab answers again"]


def test_the_silence_of_accounting_changes_nothing_and_is_told_once(bench: Bench) -> None:
    bench.transport.answers["scontrol"] = facts_text("accounting_storage/slurmdbd")
    bench.submit()
    bench.transport.answers["sacct "] = Answer(1, "", "slurmdbd: connection refused")
    assert [bench.look()[0].phase for _ in range(3)] == ["unknown"] * 3
    assert len(bench.executor.notices()) == 1
    bench.transport.answers["sacct "] = booked("100", "NODE_FAIL", bench.open[0].name)
    assert bench.look()[0].code == "node-failed"


def test_between_two_questions_the_last_answer_stands(bench: Bench) -> None:
    bench.submit()
    bench.queue("RUNNING")
    bench.look()
    asked = len(bench.transport.asked)
    bench.queue("COMPLETED")
    assert bench.executor.poll(bench.open)[bench.open[0].name].phase == "running"
    assert len(bench.transport.asked) == asked


def test_files_that_cannot_be_fetched_leave_the_states_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit()
    bench.queue("RUNNING")
    bench.look()

    def broken(*_: Any) -> None:
        raise InfraError("transfer-failed", "no space here")

    monkeypatch.setattr(bench.transport, "pull", broken)
    bench.queue("NODE_FAIL")
    assert bench.look()[0].phase == "running"
    assert any("no space here" in told for told in bench.executor.notices())


def test_of_what_ended_everything_is_fetched_of_the_others_what_they_say(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit(2)
    bench.queue("RUNNING", "NODE_FAIL")
    bench.look()
    (source, target, said), (_, _, whole) = bench.transport.pulled
    assert (source, target) == ("/shared/infx/runs/r1", bench.run_dir)
    assert "jobs/j0/a1/events.jsonl" in said
    assert not {"jobs/j0/a1", "jobs/j1/a1"} & {*said}
    assert "jobs/j1/a1" in whole


def test_files_of_many_ended_jobs_are_fetched_a_few_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit(20)
    bench.queue(*["CANCELLED"] * 20)
    assert [state.phase for state in bench.look()].count("ended") == 8
    bench.look()
    assert [state.phase for state in bench.look()].count("ended") == 20


def test_one_job_whose_files_cannot_be_fetched_holds_up_no_other(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit(2)
    bench.queue("CANCELLED", "CANCELLED")
    pull = bench.transport.pull

    def refuse(source: str, target: Path, names: Sequence[str]) -> None:
        if "jobs/j0/a1" in names:
            raise InfraError("transfer-failed", "permission denied")
        pull(source, target, names)

    bench.transport.pull = refuse  # type: ignore[method-assign]
    assert [state.phase for state in bench.look()] == ["unknown", "ended"]
    assert any("permission denied" in told for told in bench.executor.notices())


def test_exclusions_that_leave_no_node_are_dropped(bench: Bench) -> None:
    bench.executor.check([])  # the cluster has node1 only
    [order] = batch(run_dir=bench.run_dir).numbered()
    [kept] = bench.executor.arrange([replace(order, exclude=("node9",))], [])
    assert kept.exclude == ("node9",)
    [dropped] = bench.executor.arrange([replace(order, exclude=("node1", "node9"))], [])
    assert dropped.exclude == ()


HOPELESS = "PartitionTimeLimit"


def test_a_hopeless_reason_seen_twice_ends_the_job_with_it(bench: Bench) -> None:
    bench.submit(3)
    bench.queue(*["PENDING"] * 3, reason=HOPELESS)
    assert {state.phase for state in bench.look()} == {"queued"}
    assert bench.cancels() == []
    bench.look()
    [line] = bench.cancels()  # one for all of them
    assert f"--name={bench.open[0].attempt.batch}" in line
    bench.queue(*["CANCELLED"] * 3)
    for state in bench.look():
        assert (state.phase, state.code) == ("ended", "never-scheduled")
        assert HOPELESS in state.sentence


def test_a_reason_that_passes_is_forgotten(bench: Bench) -> None:
    bench.submit()
    for reason in (HOPELESS, "Resources", HOPELESS, "Resources"):
        bench.queue("PENDING", reason=reason)
        bench.look()
    assert bench.cancels() == []
    bench.queue("CANCELLED")
    assert bench.look()[0].code == "cancelled-outside"


def test_what_never_started_is_given_up_for_good(bench: Bench) -> None:
    bench.submit()
    [state] = bench.look()
    assert (state.phase, state.void) == ("ended", True)
    holder = claim.holder(bench.open[0].folder)
    assert holder
    assert holder.by == "infx"
    assert len(bench.cancels()) == 1


def test_an_attempt_given_up_before_a_crash_is_given_up_again(bench: Bench) -> None:
    bench.submit()
    claim.abandon(bench.open[0].folder)
    assert bench.look()[0].void


def test_an_intent_whose_folder_was_never_made_is_given_up_too(bench: Bench) -> None:
    bench.open = batch(run_dir=bench.run_dir).numbered()
    assert bench.look()[0].void


def test_what_a_job_has_claimed_is_not_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    bench.submit()
    monkeypatch.setattr("infx.launch.slurm.evidence.claimed", lambda order: False)  # seen late
    claim.take(bench.open[0].folder, claim.Claim(by="job"))
    [state] = bench.look()
    assert (state.phase, state.void) == ("suspect", False)


def test_over_ssh_nothing_is_given_up_while_the_host_is_silent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, host="login")
    bench.submit()
    bench.transport.answers["mkdir -p"] = SILENCE
    assert bench.look()[0].phase == "suspect"
    assert any("cannot be given up yet" in told for told in bench.executor.notices())
    bench.transport.answers["mkdir -p"] = ""
    assert bench.look()[0].void
