"""Every code of infx has a class, and one cause one fingerprint."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.domain.outcome import Outcome, ending_of, outcome_of
from infx.domain.status import CANCELLED, OK, PENDING, State, Status

FAMILIES: dict[str, Outcome] = {
    "config": "config",
    "plan": "config",
    "usage": "config",
    "ci": "config",
    "changelog": "config",
    "infra": "infra",
    "failed": "config",
    "invalid": "harness",
    "skipped": "cancelled",
    "remark": "config",
    "golden": "config",
    "engine": "engine",
    "mono": "config",
}
EXCEPTIONS: dict[str, Outcome] = {
    "submit-refused": "config",
    "server-exited": "engine",
    "server-died": "engine",
    "first-request": "engine",
    "wrong-server": "engine",
    "acceptance-off": "engine",
    "mono-coverage": "engine",
    "preemption-storm": "engine",
    "out-of-memory": "oom",
    "too-little-memory": "oom",
    "srt-no-export": "harness",
    "server-hung": "hang",
    "client-hung": "hang",
    "evaluation-hung": "hang",
    "time-limit": "timeout",
    "cancelled-outside": "cancelled",
    "client-failed": "harness",
    "evaluation-failed": "harness",
    "internal": "harness",
    "empty-answers": "accuracy",
    "config-differs": "config",
    "context-overflow": "config",
}
NODE_FAILED = Status("failed", "node-failed", "a node of the job failed")
DIED = Status("failed", "server-died", "exit code 1")


def fingerprint(code: str, sentence: str) -> str:
    return ending_of([Status("failed", code, sentence)]).fingerprint


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_code_has_its_class(family: str) -> None:
    codes = [code for code in CODES.values() if code.family == family]
    assert codes
    state: State = "invalid" if family == "invalid" else "failed"
    found = {code.name: outcome_of(Status(state, code.name)) for code in codes}
    assert found == {code.name: EXCEPTIONS.get(code.name, FAMILIES[family]) for code in codes}


def test_the_tables_are_of_codes_and_families() -> None:
    assert EXCEPTIONS.keys() <= CODES.keys()
    assert FAMILIES.keys() == {code.family for code in CODES.values()}


def test_only_what_a_resume_measures_again_is_blamed_on_the_machine() -> None:
    blamed = [code for code in CODES if outcome_of(Status("failed", code)) == "infra"]
    assert {CODES[code].family for code in blamed} == {"infra"}  # not kept, see store.kept


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (OK, "ok"),
        (Status("measured"), "ok"),
        (CANCELLED, "cancelled"),
        (PENDING, "cancelled"),
        (Status("cancelled", "cancelled-outside"), "cancelled"),
        (Status("skipped", "canary-failed"), "cancelled"),
        (Status("failed", "no-such-code"), "harness"),
    ],
)
def test_states_without_a_failure(status: Status, expected: str) -> None:
    assert outcome_of(status) == expected


SAME = [
    ("the job ended (exit code 3): no log", "the job ended (exit code 139): no log"),
    ("no answer after 1.5 s", "no answer after 30 s"),
    ("cannot write /runs/r1/jobs/a1: full", "cannot write /home/me/x/a2: full"),
    ("job 12_3 is gone", "job 4711_15 is gone"),
    ("node3 failed", "node12 failed"),
    ("at 0x7fffab12", "at 0xdeadbeef"),
    ("infx-20260102-030405-1234-aaaaaaaa-a1", "infx-20260102-030405-1234-0123abcd-a2"),
    ("http://10.0.0.1:8000/v1 refused", "http://10.0.3.77:18123/v1/models refused"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_numbers_paths_and_ids_do_not_make_another_cause(one: str, other: str) -> None:
    assert fingerprint("job-lost", one) == fingerprint("job-lost", other)


def test_other_words_or_another_code_are_another_cause() -> None:
    one = fingerprint("job-lost", "no space left")
    assert one != fingerprint("job-lost", "permission denied")
    assert one != fingerprint("launch-failed", "no space left")


def test_an_attempt_ends_as_its_first_bad_point() -> None:
    late = Status("failed", "time-limit", "late")
    ending = ending_of([OK, DIED, late], "node3")
    told = (ending.outcome, ending.code, ending.sentence, ending.node)
    assert told == ("engine", "server-died", "exit code 1", "node3")


def test_a_failure_of_the_machine_counts_before_what_failed_before_it() -> None:
    assert ending_of([DIED, CANCELLED, NODE_FAILED]).code == "node-failed"


def test_a_good_attempt_names_its_node_only() -> None:
    ending = ending_of([OK, OK], "node1")
    assert (ending.outcome, ending.code, ending.fingerprint) == ("ok", "", "")
    assert ending.node == "node1"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([OK, CANCELLED, DIED, NODE_FAILED, Status("invalid", "errors")])))
def test_the_class_is_one_of_the_points_and_ok_only_when_all_are(statuses: list[Status]) -> None:
    outcome = ending_of(statuses).outcome
    classes = {outcome_of(status) for status in statuses} or {"ok"}
    assert outcome in classes
    assert (outcome == "ok") == (classes == {"ok"})
    assert (outcome == "infra") == ("infra" in classes)
