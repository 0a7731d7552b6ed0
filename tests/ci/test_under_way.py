"""Which runs a pull request left under way, and which of them goes on."""

from __future__ import annotations

from dataclasses import replace

from infx.ci.stored import Stored
from infx.ci.under_way import goes_on, left_by
from infx.domain.plan import Origin
from infx.domain.status import CANCELLED, OK, PENDING, RUNNING, Status

FAILED = Status("failed", "server-died", "it died")


def run(
    name: str, number: int | None = 17, repository: str = "example/lab", **states: Status
) -> Stored:
    origin = (
        Origin(repository=repository, pull_request=number, head_sha="0" * 40) if number else None
    )
    made_s = float(name.strip("r"))
    return Stored(run_id=name, created_s=made_s, origin=origin, states=states, points=tuple)


def test_runs_of_the_pull_request_alone_the_newest_first() -> None:
    runs = [run("r1"), run("r2", 18), run("r3", None), run("r4", 17, "other/lab"), run("r5")]
    assert [one.run_id for one in left_by(runs, "example/lab", 17)] == ["r5", "r1"]


def test_a_run_goes_on_that_will_have_measured_everything() -> None:
    going = run("r1", a=OK, b=RUNNING, c=PENDING)
    assert goes_on([going], {"a", "b", "c"}) is going
    assert goes_on([going], {"b"}) is going
    assert goes_on([going], {"b", "d"}) is None


def test_a_run_that_lost_a_point_does_not() -> None:
    for lost in (FAILED, CANCELLED, Status("invalid", "server-died", "no")):
        assert goes_on([run("r1", a=OK, b=lost)], {"a", "b"}) is None
        assert goes_on([run("r1", a=OK, b=lost)], {"a"})


def test_where_nothing_is_wanted_nothing_goes_on() -> None:
    assert goes_on([run("r1", a=RUNNING)], set()) is None
    assert goes_on([], {"a"}) is None


def test_a_run_that_labels_kept_from_standing_goes_on_only_where_they_still_do() -> None:
    """`agentx-fast` changes no identity of fixed lengths, yet what comes of it stays apart."""
    going = run("r1", a=PENDING)
    assert going.origin
    kept = replace(going.origin, reusable=False, submission_valid=False)
    for made, asked, on in (
        (going.origin, kept, True),
        (kept, kept, True),
        (kept, going.origin, False),
        (kept, replace(kept, submission_valid=True), False),
    ):
        one = replace(going, origin=made)
        assert goes_on([one], {"a"}, asked) is (one if on else None)


def test_of_several_the_first_goes_on() -> None:
    both = [run("r2", a=PENDING), run("r1", a=PENDING)]
    assert goes_on(both, {"a"}) is both[0]
