"""Comments that ask to reuse a run, and what a run cannot stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.ci.events import read_comments
from infx.ci.reuse import asked_for, chosen, command_in, dropped, refusals, reused
from infx.ci.stored import Stored, covering, measured_by, standing, unfit
from infx.domain.errors import UsageError
from infx.domain.findings import Finding
from infx.domain.status import PENDING, Status
from tests.ci.cases import EVENTS, RULES, mini, origin, other, plan_of, stored
from tests.plan.matrices import evaluation, scenario


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
        ("/reuse-sweep-run -x", None),
        ("/reuse-sweep-run ٣٧", None),
        ("> quoted\u2028/reuse-sweep-run 1", None),
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


PLANNED = plan_of(mini(image="pypi:infx==1.1")).points
OLDER = plan_of(mini(image="pypi:infx==1.0")).points


def test_a_run_of_the_same_identities_may_stand_for_them() -> None:
    assert refusals(PLANNED, stored(PLANNED)) == ()
    more = [*plan_of(other()).points, *PLANNED]
    assert refusals(PLANNED, stored(more)) == ()


def test_a_run_is_refused_with_the_field_that_differs() -> None:
    [found] = refusals(PLANNED, stored(OLDER, "37598205362"))
    assert (found.code, found.level) == ("reuse-refused", "error")
    assert found.sentence.startswith(f"run 37598205362 cannot stand for {PLANNED[0].label}: ")
    assert "image pypi:infx==1.0 → pypi:infx==1.1" in found.sentence
    assert found.sentence.endswith(
        f"(and for {len(PLANNED) - 1} more; those differ in the same fields)"
    )


def test_reasons_that_differ_are_told_apart() -> None:
    before = plan_of(mini(scenario(conc=[1, 2], max_num_seqs=4), evaluations=()))
    after = plan_of(mini(scenario(conc=[1, 2, 3], max_num_seqs=8), evaluations=()))
    differs, absent = refusals(after.points, stored(before.points))
    assert "axes.max-num-seqs 4 → 8 (and for 1 more" in differs.sentence
    assert absent.sentence.endswith("it was not measured there")
    assert "mini-c3-" in absent.sentence


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status("invalid", "acceptance-off"), "it ended invalid:acceptance-off there"),
        (Status("cancelled"), "it ended cancelled there"),
        (PENDING, "it has not ended there yet"),
        (Status("measured"), "it has not ended there yet"),
    ],
)
def test_a_run_is_refused_for_a_point_that_is_not_ok(status: Status, why: str) -> None:
    name = PLANNED[1].name
    [found] = refusals(PLANNED, stored(PLANNED, states={name: status}))
    assert PLANNED[1].label in found.sentence
    assert found.sentence.endswith(why)


def pick(
    run: str, *runs: Stored, valid: bool = True
) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    found, why = chosen(PLANNED, run, runs, "example/lab", valid=valid)
    return (found.run_id,) if found else (), why


def test_the_newest_run_that_has_everything_stands_for_it() -> None:
    runs = (
        stored(PLANNED, "old", 1.0),
        stored(PLANNED, "new", 3.0),
        stored(PLANNED[1:], "part", 4.0),
    )
    assert pick("", *runs) == pick("", *runs[::-1]) == (("new",), ())
    assert pick("old", *runs) == (("old",), ())


def test_where_none_has_everything_the_nearest_says_what_it_lacks() -> None:
    runs, found = pick("", stored(PLANNED[2:], "near", 1.0), stored(PLANNED[:1], "far", 2.0))
    assert runs == ()
    assert "no run that may stand here has measured everything" in found[0].sentence
    assert [finding.sentence.split(":")[0] for finding in found[1:]] == [
        f"run near cannot stand for {PLANNED[0].label}"
    ]
    assert len(pick("", stored(OLDER))[1]) == 1
    assert len(pick("")[1]) == 1


def test_a_name_that_no_run_has_is_an_error() -> None:
    with pytest.raises(UsageError, match="no run 37598205361") as caught:
        pick("37598205361", stored(PLANNED, "37598205362"))
    assert (caught.value.code, caught.value.hint) == ("unknown-run", "did you mean `37598205362`?")


@pytest.mark.parametrize(
    ("told", "valid", "why"),
    [
        (origin(3), True, ""),
        (origin(repository="another/lab"), True, "it is of another/lab, not of example/lab"),
        (origin(reusable=False), True, "its labels asked for what stands for no other run"),
        (origin(submission_valid=False), True, "it is not valid for submission"),
        (origin(submission_valid=False), False, ""),
        (None, True, ""),
    ],
)
def test_where_a_run_comes_from_decides_too(told: object, valid: bool, why: str) -> None:
    run = stored(PLANNED, origin=told)
    assert unfit(run, "example/lab", valid=valid) == why
    for name in ("", "run-7"):
        runs, found = pick(name, run, valid=valid)
        assert bool(runs) == (not why)
        assert all(finding.code == "reuse-refused" for finding in found)
    assert why in pick("run-7", run, valid=valid)[1][0].sentence if why else True
    assert measured_by(standing([run], "example/lab", valid=valid)).keys() == (
        set() if why else {point.point_id for point in PLANNED}
    )


def test_a_run_that_took_points_from_another_stands_with_it() -> None:
    first, *others = PLANNED
    source = stored([first], "source", 1.0)
    taken = {first.point_id: "source"}
    whole = replace(stored(others, "taker", 2.0), reused=taken, points=lambda: PLANNED)
    assert pick("taker", source, whole) == pick("", source, whole) == (("taker",), ())
    assert pick("taker", whole)[0] == ()
    foreign = replace(source, origin=origin(repository="another/lab"))
    assert pick("taker", foreign, whole)[0] == ()


def test_runs_cover_what_is_wanted_together() -> None:
    first, second, *others = PLANNED
    a, b = stored([first, *others], "a"), stored([first, second], "b")
    ids = {point.point_id for point in PLANNED}
    taken, left = covering((a, b, stored(OLDER, "c")), ids)
    assert ([run.run_id for run in taken], left) == (["a", "b"], frozenset())
    taken, left = covering((a, b, stored(PLANNED, "all")), ids)
    assert [run.run_id for run in taken] == ["all"]
    assert covering((a,), ids)[1] == {second.point_id}


def test_what_is_reused_names_its_run() -> None:
    plan = plan_of(mini(image="pypi:infx==1.1"))
    left = reused(plan, measured_by((stored(PLANNED[:2], "new"), stored(PLANNED[:3], "old"))))
    assert [(one.point.name, one.run_id) for one in left.reused] == [
        *((point.name, "new") for point in PLANNED[:2]),
        (PLANNED[2].name, "old"),
    ]


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


def test_evaluations_are_on_no_curve() -> None:
    live = plan_of(mini(scenario(conc=[1]), evaluations=(evaluation(),))).points
    assert len(live) == 2
    assert dropped(live, plan_of(mini(scenario(conc=[1]), evaluations=())).points) == ()
