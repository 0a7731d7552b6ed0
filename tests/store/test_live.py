"""The live curves: what is published stands, and nothing leaves them unseen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.ci.reuse import dropped
from infx.domain.errors import ConfigError, UsageError
from infx.domain.plan import Origin, Reused
from infx.domain.status import Status
from infx.store.exchange import place_of
from infx.store.exchange.places import Place
from infx.store.live import Live, read_live
from tests.store.machines import RUN, Machine, what
from tests.store.tiny_plans import job, plan

LATER, LAST = "20260103-000000-bbbb", "20260104-000000-cccc"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_of("shared", tmp_path, ())


@pytest.fixture
def one(tmp_path: Path):
    with Machine(tmp_path / "one") as found:
        yield found


def live(place: Place) -> Live:
    return place.read(lambda box: read_live(box.get("live.json")))


def labels(found: Live, entry: str = "tiny") -> list[tuple[str, str]]:
    return [(p.run_id, p.point.name) for p in found.entries.get(entry, ())]


def test_a_run_is_published_and_arrives_elsewhere(place, one, tmp_path: Path):
    one.whole()
    sent = one.pushes(place, guard=dropped)
    assert what(sent) == ["new"]
    assert [run for run, _ in labels(live(place))] == [RUN] * 4
    assert read_live(one.results / "live.json") == live(place) == sent.live
    with Machine(tmp_path / "two") as two:
        assert two.pulls(place).live == sent.live
        assert read_live(two.results / "live.json") == sent.live


def test_without_live_nothing_is_published(place, one):
    one.whole()
    assert one.pushes(place).live is None
    assert live(place) == Live()


def test_what_would_be_dropped_is_named_and_nothing_is_pushed(place, one):
    one.whole()
    one.pushes(place, guard=dropped)
    for of in one.begins(plan(job(0)), LATER).jobs:
        one.measures(of, run_id=LATER)
    sent = one.pushes(place, LATER, guard=dropped)
    assert [f.code for f in sent.refused] == ["points-dropped"] * 2
    assert {"tiny.s2.c1" in f.sentence or "tiny.s2.c2" in f.sentence for f in sent.refused} == {
        True
    }
    assert sent.pushed == ()
    assert place.read(lambda box: box.names()) == ["live.json", f"runs/{RUN}.tar.gz"]
    assert one.pushes(place, LATER, guard=lambda *_: ()).refused == ()
    assert [run for run, _ in labels(live(place))] == [LATER] * 2


def test_a_failed_point_is_dropped_too(place, one):
    one.whole()
    one.pushes(place, guard=dropped)
    first, second = one.begins(run_id=LATER).jobs
    one.measures(first, run_id=LATER)
    one.measures(second, Status("failed", "server-hung"), LATER)
    assert len(one.pushes(place, LATER, guard=dropped).refused) == 2


def test_other_entries_stay(place, one):
    other = replace(job(0), points=tuple(replace(p, entry="other") for p in job(0).points))
    one.whole()
    one.pushes(place, guard=dropped)
    one.begins(plan(other), LATER)
    one.measures(other, run_id=LATER)
    one.pushes(place, LATER, guard=dropped)
    assert [run for run, _ in labels(live(place))] == [RUN] * 4
    assert [run for run, _ in labels(live(place), "other")] == [LATER] * 2


def test_reused_points_are_published_from_their_own_run_which_comes_along(place, one):
    one.whole()
    first, second = plan().jobs
    taken = tuple(Reused(point=point, run_id=RUN) for point in second.points)
    one.begins(replace(plan(first), reused=taken), LATER)
    one.measures(first, run_id=LATER)
    sent = one.pushes(place, LATER, guard=dropped)
    assert [told.run_id for told in sent.pushed] == [LATER, RUN]
    assert [run for run, _ in labels(live(place))] == [LATER, LATER, RUN, RUN]


def test_a_plan_says_which_points_are_published_and_from_which_runs(place, one):
    """Of runs that measured more: points of other entries, points that are gone again."""
    one.whole()
    first, second = plan().jobs
    other = replace(job(2), points=tuple(replace(p, entry="other") for p in job(2).points))
    for of in one.begins(plan(first, other), LATER).jobs:
        one.measures(of, run_id=LATER)
    taken = [Reused(point=p, run_id=LATER) for p in first.points]
    taken += [Reused(point=p, run_id=RUN) for p in second.points[:1]]
    shown = replace(plan(), points=(), jobs=(), reused=tuple(taken))
    sent = one.pushes(place, LATER, guard=dropped, plan=shown)
    assert [told.run_id for told in sent.pushed] == [LATER, RUN]
    assert [run for run, _ in labels(live(place))] == [LATER, LATER, RUN]
    assert labels(live(place), "other") == []
    lost = replace(shown, reused=(*taken, Reused(point=second.points[1], run_id=LATER)))
    with pytest.raises(UsageError, match="no run here has measured 1 of the plan's 4 points"):
        one.pushes(place, LATER, guard=dropped, plan=lost)
    with pytest.raises(UsageError, match="no run here has measured 4 of the plan's 7 points"):
        one.pushes(place, LATER, guard=dropped, plan=replace(plan(), reused=tuple(taken)))


@pytest.mark.parametrize("shortened", ["plan", "source"])
def test_nothing_shortened_is_shown_by_a_plan_or_from_another_run(place, one, shortened: str):
    short = Origin(repository="a/b", pull_request=1, head_sha="0", submission_valid=False)
    first, second = plan().jobs
    of_source = replace(plan(), origin=short if shortened == "source" else None)
    for of in one.begins(of_source).jobs:
        one.measures(of)
    taken = tuple(Reused(point=p, run_id=RUN) for p in (*first.points, *second.points))
    of_plan = short if shortened == "plan" else None
    shown = replace(plan(), points=(), jobs=(), reused=taken, origin=of_plan)
    one.begins(replace(plan(first), reused=taken[2:]), LATER)
    one.measures(first, run_id=LATER)
    with pytest.raises(UsageError, match="shortened by a label"):
        one.pushes(place, LATER, guard=dropped, plan=shown)
    if shortened == "source":
        with pytest.raises(UsageError, match=f"run {RUN} was shortened"):
            one.pushes(place, LATER, guard=dropped)
    assert not one.results.parent.joinpath("shared").exists()


def test_what_may_not_be_shown_is_refused(place, one):
    origin = Origin(repository="a/b", pull_request=1, head_sha="0", submission_valid=False)
    for of in one.begins(replace(plan(), origin=origin)).jobs:
        one.measures(of)
    with pytest.raises(UsageError, match="shortened by a label"):
        one.pushes(place, guard=dropped)
    first, _ = one.begins(run_id=LATER).jobs
    one.measures(first, run_id=LATER)
    one.launches(first, LATER)
    with pytest.raises(UsageError, match="is under way"):
        one.pushes(place, LATER, guard=dropped)
    for of in one.begins(run_id=LAST).jobs:
        one.measures(of, Status("failed", "server-hung"), LAST)
    with pytest.raises(UsageError, match="no point that is ok"):
        one.pushes(place, LAST, guard=dropped)
    assert not one.results.parent.joinpath("shared/live.json").exists()


def test_the_same_again_changes_nothing(place, one, tmp_path: Path):
    one.whole()
    one.pushes(place, guard=dropped)
    before = (tmp_path / "shared/live.json").stat().st_mtime_ns
    assert what(one.pushes(place, guard=dropped)) == ["kept"]
    assert (tmp_path / "shared/live.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["{", '{"entries": 3}', '{"schema_version": "9"}'])
def test_curves_that_cannot_be_read_are_refused(place, one, tmp_path: Path, text: str):
    one.whole()
    one.pushes(place)
    (tmp_path / "shared/live.json").write_text(text)
    for refused in (lambda: one.pushes(place, guard=dropped), lambda: one.pulls(place)):
        with pytest.raises(ConfigError):
            refused()
    assert not (one.results / "live.json").exists()
