"""Pending reasons: whose limit it is decides whether waiting helps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.launch.slurm.reasons import pending

# Seen on a 22.05 cluster, as squeue's %r wrote them.
SEEN = [
    ("None", "wait"),
    ("Priority", "wait"),
    ("Resources", "wait"),
    ("BeginTime", "wait"),
    ("JobArrayTaskLimit", "wait"),
    ("QOSMaxGRESPerUser", "wait"),
    ("QOSGrpGRES", "wait"),
    ("QOSMaxJobsPerUserLimit", "wait"),
    ("ReqNodeNotAvail, May be reserved for other job", "wait"),
    ("JobHeldUser", "warn"),
    ("PartitionConfig", "warn"),
    ("ReqNodeNotAvail, UnavailableNodes:node4", "warn"),
    ("ReqNodeNotAvail, Reserved for maintenance", "warn"),
    (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority"
        " partitions",
        "warn",
    ),
    ("DependencyNeverSatisfied", "hopeless"),
    ("PartitionTimeLimit", "hopeless"),
    ("PartitionNodeLimit", "hopeless"),
    ("BadConstraints", "hopeless"),
    ("QOSMaxWallDurationPerJobLimit", "hopeless"),
    ("QOSMaxGRESPerJob", "hopeless"),
    ("AssocMaxWallDurationPerJobLimit", "hopeless"),
    ("job requeued in held state", "hopeless"),
    ("launch failed requeued held", "hopeless"),
]
# From the documentation of 22.05 to 25.11.
DOCUMENTED = [
    ("", "wait"),
    ("(null)", "wait"),
    ("(Resources)", "wait"),
    ("(AssocMaxNodePerJobLimit)", "hopeless"),  # as the column NODELIST(REASON) writes it
    ("Licenses", "wait"),
    ("Dependency", "wait"),
    ("Reservation", "wait"),
    ("SchedDefer", "wait"),
    ("Constraints", "wait"),
    ("MaxGRESPerAccount", "wait"),
    ("MaxCpuPerAccount", "wait"),
    ("MaxSubmitJobsPerAccount", "wait"),
    ("QOSMaxCpuPerUserLimit", "wait"),
    ("QOSMaxSubmitJobPerUserLimit", "wait"),
    ("AssocMaxJobsLimit", "wait"),
    ("AssocGrpGRES", "wait"),
    ("AssocGrpCpuLimit", "wait"),
    ("AssocGrpCPURunMinutesLimit", "wait"),
    ("AssocGrpGRESRunMinutes", "wait"),
    ("AssocGrpCPUMinutesLimit", "warn"),
    ("QOSGrpBillingMinutes", "warn"),
    ("AssocGrpWallLimit", "warn"),
    ("JobHeldAdmin", "warn"),
    ("PartitionDown", "warn"),
    ("PartitionInactive", "warn"),
    ("NodeDown", "warn"),
    ("ReqNodeNotAvail", "warn"),
    ("ReqNodeNotAvail(Unavailable:node1)", "warn"),
    ("AccountingPolicy", "warn"),
    ("InvalidAccount", "hopeless"),
    ("InvalidQOS", "hopeless"),
    ("AccountNotAllowed", "hopeless"),
    ("QOSNotAllowed", "hopeless"),
    ("AssocMaxCpuPerJobLimit", "hopeless"),
    ("AssocMaxGRESPerJob", "hopeless"),
    ("AssocMaxGRESMinutesPerJob", "hopeless"),
    ("QOSMaxMemoryPerNode", "hopeless"),
    ("QOSMinGRES", "hopeless"),
    ("QOSMinCpuNotSatisfied", "hopeless"),
    ("MaxMemPerLimit", "hopeless"),
    ("JobHoldMaxRequeue", "hopeless"),
    ("ReservationDeleted", "hopeless"),
    ("launch_failed_requeued_held", "hopeless"),  # as scontrol spells it
    ("job_requeued_in_special_exit_state", "hopeless"),
    ("SomethingOf2031", "wait"),
]


@pytest.mark.parametrize(("reason", "kind"), SEEN + DOCUMENTED)
def test_a_reason_waits_warns_or_is_hopeless(reason: str, kind: str) -> None:
    told = pending(reason)
    assert told.kind == kind
    assert (told.code == "never-scheduled") == (kind == "hopeless")
    assert not told.code or told.code in CODES


def test_the_sentence_carries_slurms_own_text() -> None:
    told = pending("ReqNodeNotAvail, UnavailableNodes:node4")
    assert told.sentence.endswith("(ReqNodeNotAvail, UnavailableNodes:node4)")


def test_an_unknown_reason_says_so() -> None:
    assert "does not know" in pending("SomethingOf2031").sentence
    assert all("does not know" not in pending(reason).sentence for reason, _ in SEEN)


@settings(max_examples=50)
@given(st.text())
def test_any_text_has_a_meaning_and_nothing_unknown_is_hopeless(text: str) -> None:
    told = pending(text)
    assert told.sentence
    assert told.kind == "wait" or "does not know" not in told.sentence
