"""States and endings. Pairs of state, reason and exit code marked 22.05 were seen on a cluster."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.launch.slurm.states import (
    COMPACT,
    QUEUED,
    REQUEUED,
    RUNNING,
    TERMINAL,
    canonical,
    ending,
    phase,
)


def test_the_sets_do_not_overlap_and_hold_every_compact_code() -> None:
    assert not QUEUED & RUNNING
    assert not QUEUED & TERMINAL
    assert not RUNNING & TERMINAL
    assert set(COMPACT.values()) <= QUEUED | RUNNING | TERMINAL
    assert REQUEUED < QUEUED


@pytest.mark.parametrize(
    ("text", "name", "where"),
    [
        ("PENDING", "PENDING", "queued"),
        ("PD", "PENDING", "queued"),
        ("RUNNING", "RUNNING", "running"),
        ("CG", "COMPLETING", "running"),
        ("COMPLETING", "COMPLETING", "running"),
        ("SUSPENDED", "SUSPENDED", "running"),
        ("CONFIGURING", "CONFIGURING", "running"),
        ("REQUEUED", "REQUEUED", "queued"),
        ("SPECIAL_EXIT", "SPECIAL_EXIT", "queued"),
        ("SE", "SPECIAL_EXIT", "queued"),
        ("CANCELLED by 0", "CANCELLED", "ended"),
        ("CANCELLED+", "CANCELLED", "ended"),
        ("OUT_OF_ME+", "OUT_OF_ME", "unknown"),  # cut by a narrow column: not guessed
        ("completed", "COMPLETED", "ended"),
        ("PREEMPTED", "PREEMPTED", "ended"),
        ("EXPEDITING", "EXPEDITING", "queued"),  # 25.11, from its documentation
        ("POWER_UP_NODE", "POWER_UP_NODE", "running"),  # 24.05, from its documentation
        ("", "", "unknown"),
        ("SOMETHING_NEW", "SOMETHING_NEW", "unknown"),
    ],
)
def test_a_state_in_any_spelling(text: str, name: str, where: str) -> None:
    assert canonical(text) == name
    assert phase(text) == where


@settings(max_examples=50)
@given(st.text())
def test_no_text_but_a_terminal_state_is_an_end(text: str) -> None:
    assert (phase(text) == "ended") == (canonical(text) in TERMINAL)


@pytest.mark.parametrize(
    ("state", "reason", "exit_code", "derived", "code", "part"),
    [
        # 22.05
        ("COMPLETED", "None", (0, 0), (0, 0), "", "completed"),
        ("COMPLETED", "None", (0, 0), (3, 0), "", "a step of it ended with exit code 3"),
        ("FAILED", "None", (7, 0), (0, 0), "", "exit code 7"),
        ("FAILED", "None", (127, 0), (0, 0), "", "exit code 127"),
        ("FAILED", "None", (66, 0), (0, 0), "launch-failed", "folder"),
        ("FAILED", "NonZeroExitCode", (69, 0), (0, 0), "launch-failed", "interpreter"),
        ("FAILED", "None", (0, 11), (0, 0), "", "signal 11 (SIGSEGV)"),
        ("FAILED", "JobLaunchFailure", (0, 11), None, "", "signal 11"),
        ("FAILED", "None", (0, 53), (0, 0), "launch-failed", "0:53"),
        ("FAILED", "JobLaunchFailure", (0, 53), None, "launch-failed", "folder"),
        ("FAILED", "JobLaunchFailure", None, None, "launch-failed", "or a signal"),
        ("FAILED", "JobLaunchFailure", (0, 9), None, "out-of-memory", "SIGKILL"),
        ("FAILED", "None", (0, 9), (0, 0), "out-of-memory", "SIGKILL"),
        ("FAILED", "NonZeroExitCode", None, None, "", "other than 0"),
        ("FAILED", "BadConstraints", None, None, "submit-refused", "submitted"),
        ("NODE_FAIL", "NodeDown", None, None, "node-failed", "node"),
        ("PREEMPTED", "None", (0, 0), (0, 0), "preempted", "priority"),
        ("TIMEOUT", "TimeLimit", None, None, "time-limit", "time limit"),
        ("DEADLINE", "None", (1, 0), (0, 0), "time-limit", "deadline"),
        ("CANCELLED by 0", "None", (0, 0), (0, 0), "cancelled-outside", "by user 0"),
        ("CANCELLED", "None", (0, 15), (0, 0), "cancelled-outside", "cancelled outside infx"),
        ("CANCELLED", "DependencyNeverSatisfied", (0, 0), None, "never-scheduled", "depends on"),
        # from the documentation
        ("OUT_OF_MEMORY", "OutOfMemory", (0, 125), (0, 125), "out-of-memory", "memory"),
        ("FAILED", "None", (0, 125), (0, 0), "out-of-memory", "memory"),
        ("BOOT_FAIL", "None", None, None, "node-failed", "boot"),
        ("REVOKED", "None", None, None, "cancelled-outside", "federation"),
        ("FAILED", "LaunchFailed", None, None, "launch-failed", "launch"),
        ("FAILED", "None", (0, 64), None, "", "signal 64"),
        ("FAILED", "None", (0, 200), None, "", "signal 200"),
        ("FAILED", "None", None, None, "", "not known"),
    ],
)
def test_what_an_end_means(
    state: str,
    reason: str,
    exit_code: tuple[int, int] | None,
    derived: tuple[int, int] | None,
    code: str,
    part: str,
) -> None:
    told = ending(state, reason, exit_code, derived)
    assert told.code == code
    assert part in told.sentence
    assert not code or CODES[code].family in ("infra", "failed")


def test_who_cancelled_may_stand_apart() -> None:
    assert ending("CANCELLED", by="1000").sentence == "cancelled by user 1000"


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_every_terminal_state_has_a_meaning(state: str) -> None:
    assert ending(state).sentence


@pytest.mark.parametrize("state", ["RUNNING", "REQUEUED", "", "NEW_STATE"])
def test_what_is_not_terminal_has_none(state: str) -> None:
    with pytest.raises(ValueError, match="not a terminal state"):
        ending(state)
