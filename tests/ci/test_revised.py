"""What a plan says of points that other runs have measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infx.ci.reuse import reused
from infx.domain.plan import Plan
from infx.domain.serial import decode, encode
from tests.ci.cases import mini, plan_of

PLAN = plan_of(mini())
IDS = [point.point_id for point in PLAN.points]


@given(st.dictionaries(st.sampled_from([*IDS, "unknown"]), st.sampled_from(["a", "b"])))
def test_a_point_is_measured_or_reused_and_never_lost(stored: dict[str, str]) -> None:
    found = reused(PLAN, stored)
    assert sorted(point.point_id for point in found.expected) == sorted(IDS)
    assert {one.point.point_id: one.run_id for one in found.reused} == {
        key: run for key, run in stored.items() if key in IDS
    }
    told = {row.point_id: row.sentence for row in found.ledger if row.disposition == "reused"}
    assert told == {key: f"measured in run {stored[key]}" for key in stored if key in IDS}
    assert sum(found.counts.values()) == found.candidates
    assert decode(encode(found), Plan) == found


def test_what_is_reused_later_joins_what_is_reused() -> None:
    found = reused(reused(PLAN, {IDS[0]: "a"}), {IDS[1]: "b", IDS[0]: "c"})
    assert [one.run_id for one in found.reused] == ["a", "b"]


def test_a_plan_saved_before_reuse_reads() -> None:
    old = encode(PLAN).replace(b',"reused":[]', b"")
    assert b'"reused":[]' not in old
    assert decode(old, Plan) == PLAN
