"""What becomes of the points of an attempt that ended, and who explains it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.record import Attempt, PointRecord
from infx.domain.status import CANCELLED, OK, Status
from infx.launch.collect import collect, ending_in
from infx.launch.executor import JobState, Order
from tests.store.tiny_plans import job, judge, record, write_point

JOB = job(0, points=3)
MEASURED = Status("measured")
DIED = Status("failed", "server-died", "exit code 1")
ENDED = JobState(phase="ended", exit_code=3)


class Left:
    """An attempt's folder, and what is made of it."""

    def __init__(self, results: Path) -> None:
        self.run_dir = results / "runs" / "r1"
        attempt = Attempt(run_id="r1", job_id=JOB.job_id, number=1, scheduler_id="12")
        written = write_point(self.run_dir, JOB, record(JOB.points[0], "r1", JOB.job_id))
        self.order = Order(attempt=attempt, job=JOB, folder=written.parents[2])
        written.unlink()

    def points(self, *statuses: Status) -> None:
        for point, status in zip(JOB.points, statuses, strict=False):
            found = record(point, "r1", JOB.job_id, status=status)
            write_point(self.run_dir, JOB, found)

    def says(self, status: str, sentence: str = "") -> None:
        line = f'{{"t": 1, "event": "job-ended", "status": "{status}", "sentence": "{sentence}"}}\n'
        (self.order.folder / "events.jsonl").write_text(line)

    def logs(self, text: str) -> None:
        (self.order.folder / "infx.log").write_text(text)

    def collect(self, state: JobState = ENDED, *, cancelled: bool = False) -> list[PointRecord]:
        return collect(self.order, state, self.run_dir, judge, cancelled=cancelled)

    def statuses(self, state: JobState = ENDED, *, cancelled: bool = False) -> list[Status]:
        return [found.status for found in self.collect(state, cancelled=cancelled)]


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path)


def ended(code: str = "", sentence: str = "", **told: object) -> JobState:
    return replace(ENDED, code=code, sentence=sentence, **told)  # type: ignore[arg-type]


def test_measured_points_are_judged_and_nothing_is_added(left: Left) -> None:
    left.points(MEASURED, DIED, MEASURED)
    assert left.statuses() == [OK, DIED, OK]


def test_missing_points_are_lost_with_the_last_line_of_the_log(left: Left) -> None:
    left.points(MEASURED)
    left.logs("starting\nthe disk is gone\n\n")
    lost = Status("failed", "job-lost", "the job ended (exit code 3): the disk is gone")
    assert left.statuses() == [OK, lost, lost]


def test_without_any_word_it_says_so(left: Left) -> None:
    [lost, *_] = left.statuses(JobState(phase="ended"))
    assert lost.sentence == "the job ended (exit code unknown): no log"


def test_what_the_executor_says_of_a_lost_job_stands_before_its_log(left: Left) -> None:
    left.logs("infx: node1 has no interpreter /nowhere/python\n")
    [lost, *_] = left.statuses(ended("job-lost", "Slurm says FAILED"))
    told = "Slurm says FAILED: infx: node1 has no interpreter /nowhere/python"
    assert lost == Status("failed", "job-lost", told)


def test_a_record_that_cannot_be_read_is_the_evidence(left: Left) -> None:
    left.points(MEASURED)
    [written] = left.order.folder.glob("points/*/point.json")
    written.write_text("{")
    [lost, *_] = left.statuses()
    assert lost.code == "job-lost"
    assert "point.json" in lost.sentence


def test_the_jobs_own_last_word_explains_what_is_missing(left: Left) -> None:
    left.says("failed:harness-missing", "no aiperf here")
    told = Status("failed", "harness-missing", "no aiperf here")
    assert left.statuses() == [told] * 3
    assert left.statuses(ended("job-lost", "Slurm forgot it")) == [told] * 3


@pytest.mark.parametrize("status", ["ended", "ok", "failed:no-such-code", "failed:"])
def test_a_last_word_that_names_no_code_explains_nothing(left: Left, status: str) -> None:
    left.says(status)
    assert {found.code for found in left.statuses()} == {"job-lost"}


def test_the_executors_code_goes_before_the_last_word(left: Left) -> None:
    left.says("failed:harness-missing")
    told = Status("failed", "node-failed", "a node of the job failed")
    assert left.statuses(ended("node-failed", "a node of the job failed")) == [told] * 3


def test_the_executors_code_explains_what_was_cancelled_and_no_more(left: Left) -> None:
    left.points(MEASURED, DIED, CANCELLED)
    told = Status("failed", "preempted", "taken")
    assert left.statuses(ended("preempted", "taken")) == [OK, DIED, told]


def test_a_job_past_its_limit_says_the_limit(left: Left) -> None:
    left.points(MEASURED, CANCELLED)
    late = Status("failed", "time-limit", "the job passed its limit of 60 s")
    assert left.statuses(ended("time-limit")) == [OK, late, late]
    assert left.statuses(ended("time-limit", "Slurm's own"))[1].sentence == "Slurm's own"


def test_a_cancel_from_outside_is_a_cancelled_point_with_its_code(left: Left) -> None:
    left.points(MEASURED, CANCELLED)
    told = Status("cancelled", "cancelled-outside", "cancelled by user 0")
    assert left.statuses(ended("cancelled-outside", "cancelled by user 0")) == [OK, told, told]


def test_what_we_cancelled_is_cancelled_whatever_the_scheduler_calls_it(left: Left) -> None:
    left.points(MEASURED, CANCELLED)
    found = left.statuses(ended("cancelled-outside", "cancelled by user 0"), cancelled=True)
    assert found == [OK, CANCELLED, Status("cancelled", "", "stopped before it was measured")]


def test_a_void_attempt_leaves_only_what_it_has(left: Left) -> None:
    void = ended("", "it never started", void=True)
    assert left.statuses(void) == []
    left.points(MEASURED)
    assert left.statuses(void) == [OK]


def test_a_void_attempt_of_what_we_cancelled_is_cancelled(left: Left) -> None:
    found = left.statuses(ended("", "it never started", void=True), cancelled=True)
    assert [status.state for status in found] == ["cancelled"] * 3


def test_a_remark_is_a_finding_of_every_record_and_changes_no_status(left: Left) -> None:
    left.points(MEASURED, DIED, MEASURED)
    records = left.collect(ended(remark="only Slurm says so"))
    assert [found.status for found in records] == [OK, DIED, OK]
    for found in records:
        [finding] = found.findings
        assert (finding.code, finding.level) == ("suspect-end", "warning")
        assert "only Slurm says so" in str(finding)


def test_an_ending_is_judged_by_the_points_that_were_to_be_measured(left: Left) -> None:
    order = replace(left.order, job=replace(JOB, points=JOB.points[1:]))
    left.points(DIED, MEASURED, MEASURED)
    assert ending_in(order, ended(), left.collect()).outcome == "ok"
    assert ending_in(left.order, ended(), left.collect()).code == "server-died"


def test_an_ending_names_the_node_that_anybody_knows(left: Left) -> None:
    assert ending_in(left.order, ended(node="node3"), []).node == "node3"
    [first, *_] = left.collect()
    told = replace(first, attempt=replace(first.attempt, node="node4"))
    assert ending_in(left.order, ended(), [first, told]).node == "node4"


def test_a_void_ending_has_no_fingerprint(left: Left) -> None:
    told = ending_in(left.order, ended("", "it never started", void=True), left.collect())
    assert (told.outcome, told.sentence, told.fingerprint) == ("void", "it never started", "")


def test_a_point_without_a_record_belongs_to_the_attempt(left: Left) -> None:
    made = left.collect()[0].attempt
    assert (made.number, made.scheduler_id) == (1, "12")
    assert made.ended_s > 0
