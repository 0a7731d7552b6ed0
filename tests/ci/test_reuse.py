"""Comments that ask to reuse a run, and what a run cannot stand for."""

from __future__ import annotations

import pytest

from infx.ci.events import read_comments
from infx.ci.reuse import asked_for, command_in, dropped, refusals
from infx.domain.point import Point
from infx.domain.record import Attempt, PointRecord
from infx.domain.status import OK, Status
from tests.ci.cases import EVENTS, RULES, mini, other, plan_of
from tests.plan.matrices import scenario


@pytest.mark.parametrize(
    ("body", "run"),
    [
        ("/reuse-sweep-run", ""),
        ("/reuse-sweep-run 37598205362", "37598205362"),
        ("text\r\n/reuse-sweep-run 1  \r\nmore", "1"),
        ("/reuse-sweep-run 1\n/reuse-sweep-run quickstart-0823", "quickstart-0823"),
        ("/reuse-sweep-run 1\n/reuse-sweep-run", ""),
        ("please /reuse-sweep-run 1", None),
        ("/reuse-sweep-run 1 thanks", None),
        ("> /reuse-sweep-run 1", None),
        (" /reuse-sweep-run 1", None),
        ("/reuse-sweep-runs", None),
        ("/reuse-sweep-run ../x", None),
        ("`/reuse-sweep-run 1`", None),
        ("", None),
    ],
)
def test_the_command_stands_alone_on_a_line(body: str, run: str | None) -> None:
    assert command_in(body) == run


def test_the_latest_comment_of_someone_allowed_wins() -> None:
    comments = read_comments((EVENTS / "comments.json").read_bytes())
    found = asked_for(comments, RULES.associations)
    assert found
    assert (found.run, found.association) == ("37598205362", "COLLABORATOR")
    assert found.url.endswith("#issuecomment-103")
    assert asked_for(comments, ("OWNER",)) is None
    everyone = asked_for(comments, ("NONE", "COLLABORATOR"))
    assert everyone
    assert everyone.run == "666"


def record(point: Point, status: Status = OK) -> PointRecord:
    return PointRecord(
        point=point, status=status, attempt=Attempt(run_id="r", job_id="j", number=1)
    )


PLANNED = plan_of(mini(image="pypi:infx==1.1")).points


def test_a_run_of_the_same_identities_may_stand_for_them() -> None:
    assert refusals(PLANNED, [record(point) for point in PLANNED], "r") == ()


def test_a_run_is_refused_with_the_field_that_differs() -> None:
    older = plan_of(mini(image="pypi:infx==1.0")).points
    found = refusals(PLANNED, [record(point) for point in older], "37598205362")
    assert len(found) == len(PLANNED)
    assert {(f.code, f.level) for f in found} == {("reuse-refused", "error")}
    assert all("image pypi:infx==1.0 → pypi:infx==1.1" in f.sentence for f in found)
    assert all("run 37598205362" in f.sentence for f in found)


def test_a_run_is_refused_for_a_point_that_it_lacks_or_that_is_not_ok() -> None:
    first, second, *others = PLANNED
    bad = record(second, Status("invalid", "acceptance-off"))
    found = refusals(PLANNED, [bad, *map(record, others)], "r")
    assert len(found) == 2
    assert second.label in found[0].sentence
    assert "acceptance-off" in found[0].sentence
    assert first.label in found[1].sentence
    assert "not measured" in found[1].sentence


def test_a_publish_that_drops_points_says_which() -> None:
    live = [
        *plan_of(mini(scenario(conc=[1, 2, 4]))).points,
        *plan_of(other()).points,
    ]
    newer = plan_of(mini(scenario(conc=[2, 4]), image="pypi:infx==9")).points
    found = dropped(live, newer)
    assert [(f.code, f.level) for f in found] == [("points-dropped", "error")]
    assert "mini-c1" in found[0].sentence
    assert dropped(live, [*newer, *live]) == ()
