"""Where an attempt is: an end is believed when Slurm and the job's own record both tell it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.job.result import Result
from infx.launch.slurm.queue import Row
from infx.launch.slurm.states import DROPPED, QUEUED, RUNNING, TERMINAL, UNTOLD
from infx.launch.slurm.verdict import Sight, alive, state_of

PATIENCE_S = 60.0
RESULT = Result(
    run_id="r1",
    job_id="j",
    attempt=1,
    unique_name="n",
    node="node2",
    started_s=0,
    ended_s=1,
    status="ended",
)
ENDED = sorted(TERMINAL)
UNEXPLAINED = ("COMPLETED", "FAILED")


def row(state: str, **told: Any) -> Row:
    return Row(name="n", job_id="12", task=3, state=state, source="squeue", **told)


def sight(state: str | None, *, late: bool = False, **seen: Any) -> Sight:
    differs_s = PATIENCE_S + 1 if late else 0.0
    found = row(state, nodes="node1") if state else None
    return Sight(**{"row": found, "result": None, "differs_s": differs_s} | seen)


@pytest.mark.parametrize("state", ENDED)
def test_an_end_that_both_tell_is_believed_at_once(state: str) -> None:
    seen = sight(state, result=RESULT, claimed=True)
    told = state_of(seen, PATIENCE_S)
    assert (told.phase, told.remark, told.void) == ("ended", "", False)
    assert (told.scheduler_id, told.node) == ("12_3", "node1")
    assert not seen.one_sided


def test_an_end_without_a_record_is_suspect_and_says_so() -> None:
    seen = sight("COMPLETED", claimed=True)
    told = state_of(seen, PATIENCE_S)
    assert seen.one_sided
    assert (told.phase, told.code) == ("suspect", "")
    assert told.sentence == "Slurm says COMPLETED; its record result.json is not there yet"


def test_one_in_turn_waits_for_its_turn_and_then_for_the_end_of_the_job() -> None:
    waits = state_of(sight("RUNNING", in_turn=True), PATIENCE_S)
    assert (waits.phase, waits.code) == ("queued", "")
    assert waits.sentence == "other attempts have their turn on its allocation"
    measures = sight("RUNNING", in_turn=True, claimed=True)
    measured = sight("RUNNING", in_turn=True, claimed=True, result=RESULT, late=True)
    assert [state_of(s, PATIENCE_S).phase for s in (measures, measured)] == ["running"] * 2


@pytest.mark.parametrize("state", ENDED)
def test_one_whose_turn_did_not_come_was_never_run_unless_the_end_says_why(state: str) -> None:
    early, late = (sight(state, in_turn=True, late=late) for late in (False, True))
    told = state_of(late, PATIENCE_S)
    assert told.phase == "ended"
    assert told.void == (told.code == "")
    assert told.code not in ("job-lost", "out-of-memory", "time-limit")
    if told.void:
        assert state_of(early, PATIENCE_S).phase == "suspect"
        assert told.sentence == f"its job ended ({state}) before its turn"


def test_one_in_turn_of_a_forgotten_job_is_waited_for_while_any_of_them_writes() -> None:
    goes_on = sight(None, in_turn=True, late=True, quiet=False)
    assert state_of(goes_on, PATIENCE_S).phase == "suspect"
    assert state_of(sight(None, in_turn=True, late=True), PATIENCE_S).void
    lost = state_of(sight(None, in_turn=True, late=True, claimed=True), PATIENCE_S)
    assert (lost.code, lost.void) == ("job-lost", False)


@pytest.mark.parametrize("state", ENDED)
def test_after_the_patience_it_ends_with_a_code_and_a_remark(state: str) -> None:
    told = state_of(sight(state, claimed=True, late=True), PATIENCE_S)
    assert told.phase == "ended"
    assert told.code
    assert told.remark == f"Slurm says {state}, but its record result.json is not there"
    assert not told.void


@pytest.mark.parametrize("state", ENDED)
def test_a_job_that_never_started_is_not_waited_for_when_slurm_says_why(state: str) -> None:
    told = state_of(sight(state, claimed=False), PATIENCE_S)
    # a claim on a shared disk may be seen late: an end that nothing explains waits for it
    assert told.phase == ("suspect" if state in UNEXPLAINED else "ended")


@pytest.mark.parametrize(
    ("state", "told", "code"),
    [
        ("NODE_FAIL", {}, "node-failed"),
        ("PREEMPTED", {}, "preempted"),
        ("TIMEOUT", {}, "time-limit"),
        ("CANCELLED", {"cancelled_by": "0"}, "cancelled-outside"),
        ("OUT_OF_MEMORY", {}, "out-of-memory"),
        ("FAILED", {"exit_code": (0, 53)}, "launch-failed"),
        ("FAILED", {"exit_code": (1, 0)}, "job-lost"),
        ("COMPLETED", {"exit_code": (0, 0)}, "job-lost"),
    ],
)
def test_why_it_ended(state: str, told: dict[str, Any], code: str) -> None:
    seen = Sight(row=row(state, **told), result=None, differs_s=PATIENCE_S, claimed=True)
    assert state_of(seen, PATIENCE_S).code == code


def test_a_failure_with_a_record_is_the_records_to_explain() -> None:
    seen = Sight(row=row("FAILED", exit_code=(3, 0)), result=RESULT, claimed=True)
    told = state_of(seen, PATIENCE_S)
    assert (told.phase, told.code, told.exit_code) == ("ended", "", 3)


def test_a_record_of_a_job_that_slurm_forgot_is_believed_late() -> None:
    assert state_of(sight(None, result=RESULT), PATIENCE_S).phase == "suspect"
    told = state_of(sight(None, result=RESULT, late=True), PATIENCE_S)
    assert (told.phase, told.code, told.node) == ("ended", "", "node2")
    assert "only the job's own record" in told.remark


def test_what_neither_tells_never_ran_when_nobody_claimed_it() -> None:
    assert state_of(sight(None), PATIENCE_S).phase == "suspect"
    told = state_of(sight(None, late=True), PATIENCE_S)
    assert (told.phase, told.void, told.code) == ("ended", True, "")


def test_a_claimed_job_that_slurm_forgot_is_lost_once_it_is_quiet() -> None:
    going = sight(None, claimed=True, quiet=False, late=True)
    assert state_of(going, PATIENCE_S).phase == "suspect"
    told = state_of(sight(None, claimed=True, late=True), PATIENCE_S)
    assert (told.phase, told.void, told.code) == ("ended", False, "job-lost")


def test_an_attempt_that_another_job_has_is_waited_for_while_it_writes() -> None:
    """A drive that was lost had submitted it: this drive's own job finds it taken and ends."""
    taken = {"claimed": True, "doubled": True, "late": True}
    waits = state_of(sight("FAILED", quiet=False, **taken), PATIENCE_S)
    assert (waits.phase, waits.code) == ("suspect", "")
    assert "another job has the attempt" in waits.sentence
    assert state_of(sight("FAILED", **taken), PATIENCE_S).phase == "ended"
    told = state_of(sight("FAILED", quiet=False, result=RESULT, **taken), PATIENCE_S)
    assert (told.phase, told.code) == ("ended", "")


def test_the_silence_of_accounting_concludes_nothing_without_a_record() -> None:
    assert state_of(sight(UNTOLD, late=True, claimed=True), PATIENCE_S).phase == "unknown"
    assert state_of(sight(UNTOLD, late=True), PATIENCE_S).phase == "unknown"
    told = state_of(sight(UNTOLD, late=True, result=RESULT), PATIENCE_S)
    assert (told.phase, bool(told.remark)) == ("ended", True)


def test_a_task_that_left_the_queue_before_its_array_was_cancelled() -> None:
    assert state_of(sight(DROPPED), PATIENCE_S).phase == "suspect"
    told = state_of(sight(DROPPED, late=True), PATIENCE_S)
    assert (told.phase, told.code, told.void) == ("ended", "cancelled-outside", False)
    assert state_of(sight(DROPPED, late=True, claimed=True), PATIENCE_S).code == "job-lost"
    assert state_of(sight(DROPPED, late=True, result=RESULT), PATIENCE_S).code == ""


def test_a_record_that_slurm_contradicts_for_long_is_suspect() -> None:
    told = state_of(sight("COMPLETING", result=RESULT), PATIENCE_S)
    assert told.phase == "running"
    told = state_of(sight("COMPLETING", late=True, result=RESULT), PATIENCE_S)
    assert told.phase == "suspect"
    assert "Slurm says COMPLETING still" in told.sentence


def test_a_hopeless_reason_has_its_code() -> None:
    told = state_of(Sight(row=row("PENDING", reason="PartitionTimeLimit"), result=None), 0)
    assert (told.phase, told.code) == ("queued", "never-scheduled")
    assert "PartitionTimeLimit" in told.sentence
    told = state_of(Sight(row=row("PENDING", reason="Resources"), result=None), 0)
    assert (told.phase, told.code) == ("queued", "")


STATES = [None, UNTOLD, DROPPED, "SOME_NEW_STATE", *ENDED, *sorted(QUEUED | RUNNING)]
sights = st.builds(
    Sight,
    row=st.sampled_from(STATES).map(lambda state: row(state) if state else None),
    result=st.sampled_from([None, RESULT]),
    differs_s=st.floats(0, 200),
    claimed=st.booleans(),
    quiet=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(sights, st.floats(0, 100))
def test_every_sight_has_its_place(seen: Sight, patience_s: float) -> None:
    told = state_of(seen, patience_s)
    state = seen.row.state if seen.row else None
    if alive(seen.row):
        late = seen.result and state in RUNNING and seen.differs_s >= patience_s
        assert told.phase in (("suspect",) if late else ("queued", "running"))
    if state == "SOME_NEW_STATE":
        assert told.phase == "unknown"
    if told.phase == "suspect":
        assert told.sentence
        assert seen.one_sided
    if told.phase != "ended":
        assert not told.void
        assert not told.remark
        return
    assert state in (None, DROPPED, *TERMINAL) or (state == UNTOLD and seen.result)
    if seen.result and state in TERMINAL:
        assert not told.remark
        return
    assert told.remark or told.code or told.void
    waited = seen.differs_s >= patience_s
    assert waited or (not seen.claimed and told.code not in ("", "job-lost"))
    if told.void:
        assert waited
        assert (seen.claimed, seen.result, seen.row) == (False, None, None)
