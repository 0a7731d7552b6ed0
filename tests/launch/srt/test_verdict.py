"""Where an attempt is: what Slurm says against what the outputs hold."""

from __future__ import annotations

from typing import Any

import pytest

from infx.domain.outcome import outcome_of
from infx.domain.status import Status
from infx.launch.executor import JobState
from infx.launch.slurm.queue import Row
from infx.launch.srt.verdict import Left, Sight, final, state_of


def row(state: str, **fields: Any) -> Row:
    told: dict[str, Any] = {"name": "infx-1", "job_id": "7", "task": None, "source": "squeue"}
    return Row(**told, state=state, nodes="node1", **fields)


def seen(state: str = "", **fields: Any) -> JobState:
    extra = {k: fields.pop(k) for k in ("exit_code", "reason") if k in fields}
    sight = Sight(
        row=row(state, **extra) if state else None, outputs=fields.pop("outputs", True), **fields
    )
    return state_of(sight, 60.0)


def left(points: int = 2, measured: int = 2, *, client: bool = True, line: str = "") -> Left:
    return Left(points=points, measured=measured, client=client, line=line)


def test_a_job_in_the_queue() -> None:
    waiting = seen("PENDING", reason="Resources")
    assert (waiting.phase, waiting.code) == ("queued", "")
    assert seen("PENDING", reason="PartitionNodeLimit").code == "never-scheduled"
    assert (seen("RUNNING").phase, seen("RUNNING").node) == ("running", "node1")
    assert seen("COMPLETING").phase == "running"
    assert seen("SOMETHING_NEW").phase == "unknown"


def test_an_end_without_outputs_is_waited_for() -> None:
    assert seen("COMPLETED", outputs=False, differs_s=59).phase == "suspect"
    assert seen("COMPLETED", outputs=False, differs_s=60).phase == "ended"
    assert seen("TIMEOUT", outputs=False, differs_s=0).code == "time-limit"  # none to wait for


def test_a_job_that_slurm_forgot() -> None:
    assert seen(differs_s=59).phase == "suspect"
    assert seen(differs_s=61, quiet=False).phase == "suspect"  # its files still grow
    ended = seen(differs_s=61)
    assert (ended.phase, ended.void) == ("ended", False)
    assert "only its outputs tell" in ended.remark
    never = seen(outputs=False, differs_s=61)
    assert (never.phase, never.void) == ("ended", True)
    assert seen("UNTOLD", differs_s=61).remark
    assert seen("UNTOLD", outputs=False, differs_s=61).phase == "unknown"  # it may have run
    assert seen("DROPPED", outputs=False, differs_s=61).void


END = "JobLaunchFailure"
TABLE: list[tuple[JobState, Left | None, str, str]] = [
    (seen("COMPLETED"), left(), "", ""),
    (seen("COMPLETED"), left(measured=0), "srt-no-export", "no export of 2 of 2 points"),
    (seen("COMPLETED"), left(measured=1, line="x: y"), "srt-no-export", "1 of 2 points: x: y"),
    (seen("COMPLETED"), None, "job-lost", "its outputs folder is not there"),
    (seen("FAILED"), left(measured=0, client=False, line="OOM"), "server-exited", "OOM"),
    (seen("FAILED", exit_code=(1, 0)), left(measured=0), "client-failed", "2 of 2"),
    (seen("FAILED"), left(measured=1), "client-failed", "1 of 2"),
    (seen("TIMEOUT"), left(measured=1), "time-limit", "limit"),
    (seen("NODE_FAIL"), left(measured=0), "node-failed", "node"),
    (seen("OUT_OF_MEMORY"), left(measured=0, line="Killed"), "out-of-memory", "Killed"),
    (seen("CANCELLED"), left(measured=0), "cancelled-outside", "cancelled"),
    (seen("TIMEOUT"), None, "time-limit", "limit"),
    (seen(differs_s=99), left(measured=1), "job-lost", "no job of its name"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "outputs", "code", "sentence"), TABLE)
def test_how_an_ended_job_ended(
    state: JobState, outputs: Left | None, code: str, sentence: str
) -> None:
    found, told, _ = final(state, outputs)
    assert found == code
    assert sentence in told


def test_whole_measurements_of_a_failed_job_count_with_a_remark() -> None:
    assert final(seen("FAILED", exit_code=(1, 0)), left())[0] == ""
    assert "exit code 1" in final(seen("FAILED", exit_code=(1, 0)), left())[2]
    assert final(seen(differs_s=99), left())[2].startswith("Slurm has no job")
    assert final(seen("COMPLETED"), left())[2] == ""


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("srt-no-export", "harness"),
        ("srt-refused", "config"),
        ("srt-unsupported", "config"),
        ("srtctl-missing", "infra"),
        ("srtctl-old", "config"),
    ],
)
def test_only_the_machine_is_tried_again(code: str, outcome: str) -> None:
    assert outcome_of(Status("failed", code)) == outcome
