"""What is tried again, how often and where."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.outcome import Ending, Outcome
from infx.launch.local import LocalExecutor
from infx.launch.policy import MOST_VOIDS, Policy, bad_nodes, decide, repeats

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
VOID = Ending(outcome="void", sentence="it never started")
POLICY = Policy(retries=2, per_node=2, per_run=5)


def infra(cause: str = "a", node: str = "", code: str = "node-failed") -> Ending:
    sentence = f"it failed: {cause}"
    return Ending(outcome="infra", code=code, sentence=sentence, fingerprint=cause, node=node)


PREEMPTED = infra("p", code="preempted", node="node1")


@pytest.mark.parametrize("outcome", [o for o in OUTCOMES if o not in ("infra", "void")])
def test_what_is_not_the_machines_fault_is_not_tried_again(outcome: Outcome) -> None:
    last = Ending(outcome=outcome, code="x", sentence="y", fingerprint="z")
    assert not decide([last], [last], POLICY).again
    assert not decide([infra(), last], [infra(), last], POLICY).again


TABLE = [
    ([infra("a")], True, "it failed: a"),
    ([infra("a"), infra("b")], True, "it failed: b"),
    ([infra("a"), infra("b"), infra("c")], False, "2 new attempts are the limit of a job"),
    ([infra("a"), infra("a")], False, "twice in the same way"),
    ([infra("a"), VOID, infra("a")], False, "twice in the same way"),
    ([infra("a"), infra("b"), VOID], True, "it never started"),
    ([VOID] * (MOST_VOIDS - 1), True, "it never started"),
    ([VOID] * MOST_VOIDS, False, f"it never started, {MOST_VOIDS} times"),
    ([PREEMPTED, PREEMPTED], True, "it failed: p"),
    ([PREEMPTED, PREEMPTED, PREEMPTED], False, "the limit of a job"),
    ([infra("", code="job-lost"), infra("", code="job-lost")], True, "it failed"),
]


@pytest.mark.parametrize(("job", "again", "why"), TABLE)
def test_the_machines_failures_are_tried_again_within_limits(
    job: list[Ending], again: bool, why: str
) -> None:
    decision = decide(job, job, POLICY)
    assert decision.again == again
    assert why in decision.why


def test_no_retries_means_none() -> None:
    assert not decide([infra()], [infra()], Policy(retries=0)).again


def test_a_run_has_a_limit_of_its_own() -> None:
    others = [infra(str(n)) for n in range(POLICY.per_run)]
    assert decide([others[-1]], others, POLICY).again
    decision = decide([others[-1]], [*others, infra("one more")], POLICY)
    assert not decision.again
    assert "limit of a run" in decision.why


def test_a_node_that_failed_the_job_is_left_out_at_once_another_jobs_later() -> None:
    own, once, twice = infra("a", "node1"), infra("b", "node2"), infra("c", "node3")
    run = [own, once, twice, twice]
    assert decide([own], run, POLICY).exclude == ("node1", "node3")
    assert bad_nodes([], run, POLICY) == ("node3",)


def test_a_preemption_or_a_failure_of_the_job_blames_no_node() -> None:
    crash = Ending(outcome="engine", code="server-died", node="node2")
    run = [PREEMPTED, PREEMPTED, crash, crash]
    assert bad_nodes([PREEMPTED, crash], run, POLICY) == ()


def test_repeats_looks_at_the_last_two_real_ends() -> None:
    assert not repeats([])
    assert not repeats([infra("a")])
    assert not repeats([infra("a"), infra("b"), infra("a")])
    assert repeats([infra("b"), infra("a"), VOID, infra("a"), VOID])
    assert not repeats([PREEMPTED, PREEMPTED])


ends = st.builds(
    Ending,
    outcome=st.sampled_from(OUTCOMES),
    code=st.sampled_from(["node-failed", "preempted", "job-lost"]),
    fingerprint=st.sampled_from(["", "a", "b", "c"]),
    node=st.sampled_from(["", "node1", "node2", "node3"]),
)
policies = st.builds(
    Policy, retries=st.integers(0, 3), per_node=st.integers(1, 3), per_run=st.integers(0, 4)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ends, min_size=1, max_size=12), st.lists(ends, max_size=8), policies)
def test_no_cap_is_ever_passed(job: list[Ending], rest: list[Ending], policy: Policy) -> None:
    run = [*job, *rest]
    decision = decide(job, run, policy)
    if not decision.again:
        assert not decision.exclude
        return
    last = job[-1].outcome
    assert last in ("infra", "void")
    if last == "infra":
        assert sum(e.outcome == "infra" for e in job) <= policy.retries
        assert sum(e.outcome == "infra" for e in run) <= policy.per_run
    assert sum(e.outcome == "void" for e in job) < MOST_VOIDS or last == "infra"
    for node in decision.exclude:
        assert any(e.node == node and e.outcome == "infra" for e in run)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ends, min_size=1, max_size=12), min_size=1, max_size=3), policies)
def test_attempts_that_follow_the_policy_are_bounded(
    lives: list[list[Ending]], policy: Policy
) -> None:
    """Jobs end as ``lives`` says, one after another, and go on while the policy lets them."""
    run: list[Ending] = []
    for life in lives:
        job: list[Ending] = []
        for ending in life:
            job.append(ending)
            run.append(ending)
            if not decide(job, run, policy).again:
                break
        assert sum(e.outcome == "infra" for e in job) <= policy.retries + 1
        assert sum(e.outcome == "void" for e in job) <= MOST_VOIDS
        assert all(e.outcome in ("infra", "void") for e in job[:-1])
    again = [e for e in run if e.outcome == "infra"]
    assert len(again) <= policy.per_run + len(lives)


def test_a_void_end_keeps_the_nodes_out_that_failed_the_job() -> None:
    job = [infra("a", "node1"), replace(VOID, node="")]
    assert decide(job, job, POLICY).exclude == ("node1",)


def test_a_job_that_only_its_driver_ends_is_tried_again_for_ever() -> None:
    """Whoever kills infx eleven times on one machine resumes for the twelfth."""
    assert not decide([VOID] * MOST_VOIDS, [], Policy()).again
    assert decide([VOID] * 5 * MOST_VOIDS, [], LocalExecutor.policy).again
