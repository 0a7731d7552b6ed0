"""Runs that travel: nothing is lost, the newest state stands, whatever the place is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import InfraError, InfxError, UsageError
from infx.domain.status import OK, Status
from infx.store import RunLock, gather
from infx.store.exchange import place_of
from infx.store.exchange.places import Place
from infx.store.exchange.state import state_of
from tests.store.machines import HEAVY, RUN, Machine, what
from tests.store.tiny_plans import judge

LOST = Status("failed", "job-lost", "gone")


@pytest.fixture(params=["folder", pytest.param("archive", marks=pytest.mark.slow)])
def place(request, tmp_path: Path) -> Place:
    return place_of("shared" if request.param == "folder" else "shared.tar.gz", tmp_path, ())


@pytest.fixture
def machines(tmp_path: Path):
    with Machine(tmp_path / "one") as one, Machine(tmp_path / "two") as two:
        yield one, two


def stamps(root: Path) -> dict[Path, int]:
    found = (*root.glob("shared*"), *root.glob("shared/**/*"))
    known = {path: path.stat().st_mtime_ns for path in found if path.is_file()}
    assert known
    return known


def test_a_run_arrives_with_all_that_the_store_knows_and_every_file(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.measures(first)
    one.measures(second, LOST)
    assert what(one.pushes(place)) == ["new"]
    assert what(two.pulls(place)) == ["new"]
    assert two.files() == one.files()
    assert two.points() == one.points()
    assert two.store.records(RUN) == one.store.records(RUN)
    assert two.store.attempts(RUN) == one.store.attempts(RUN)
    assert two.store.endings(RUN) == one.store.endings(RUN)
    assert two.row() == replace(one.row(), folder=two.row().folder, project=two.row().project)


def test_a_record_that_only_the_store_has_survives_gathering_there(place, machines):
    one, two = machines
    for of in one.begins().jobs:
        one.measures(of, LOST)
    one.pushes(place)
    two.pulls(place)
    assert [r.status for r in gather(two.store, two.folder(), judge).records] == [LOST] * 4


def test_again_is_nothing_new(place, machines, tmp_path: Path):
    one, two = machines
    one.whole()
    one.pushes(place)
    before = stamps(tmp_path)
    assert what(one.pushes(place)) == ["kept"]
    assert stamps(tmp_path) == before
    two.pulls(place)
    assert what(two.pulls(place)) == ["kept"]
    assert what(two.pushes(place)) == ["kept"]


def test_a_run_goes_on_elsewhere_and_comes_back(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.measures(first)
    one.pushes(place)
    two.pulls(place)
    two.measures(second)
    two.store.set_state(RUN, "ended")
    assert what(two.pushes(place)) == ["newer"]
    assert what(one.pushes(place)) == ["older"]  # it stays there as it is
    assert what(one.pulls(place)) == ["newer"]
    assert [p.status for p in one.points()] == [OK] * 4
    assert one.files() == two.files()
    assert one.row().state == "ended"


def test_an_open_attempt_can_be_followed_elsewhere(place, machines):
    one, two = machines
    first, _ = one.begins().jobs
    name = one.launches(first, scheduler_id="4711_3")
    one.pushes(place)
    shutil.rmtree(one.folder())  # a runner that is gone
    [came] = two.pulls(place).pulled
    assert came.under_way
    assert not came.elsewhere
    [attempt] = two.store.attempts(RUN, open_only=True)
    assert (attempt.unique_name, attempt.scheduler_id) == (name, "4711_3")
    assert (attempt.batch, attempt.task) == ("b1", 3)
    assert gather(two.store, two.folder(), judge).run.run_id == RUN
    assert two.store.attempts(RUN, open_only=True) == [attempt]


def test_a_run_whose_jobs_write_to_a_folder_in_reach_goes_on_there(place, machines):
    one, two = machines
    one.launches(one.begins().jobs[0])
    one.pushes(place)
    [came] = two.pulls(place).pulled
    assert came.elsewhere == str(one.folder())
    assert two.folder() == one.folder()
    assert what(two.pulls(place)) == ["kept"]
    with RunLock(one.folder()), pytest.raises(UsageError), RunLock(two.folder()):
        pass


def test_a_run_that_is_driven_in_reach_goes_on_there_between_its_jobs_too(place, machines):
    one, two = machines
    one.begins()
    one.pushes(place)
    with RunLock(one.folder()):
        [came] = two.pulls(place).pulled
    assert came.elsewhere == str(one.folder())


@pytest.mark.parametrize(
    ("executor", "state"), [("lab", "running"), ("lab", "ended"), ("local", "running")]
)
def test_a_schedulers_run_that_goes_on_is_not_copied_where_its_folder_is_in_reach(
    place, machines, executor: str, state: str
):
    """Its driver may have submitted jobs since it pushed: a copy would not know of them."""
    one, two = machines
    one.begins(executor=executor)
    one.store.set_state(RUN, state)
    one.pushes(place)
    [came] = two.pulls(place).pulled
    stays = (executor, state) == ("lab", "running")
    assert came.elsewhere == (str(one.folder()) if stays else "")


def test_the_end_of_an_attempt_that_both_followed_is_told_once(place, machines):
    """Each saw it end by itself: nobody knows more than the other."""
    one, two = machines
    first, _ = one.begins().jobs
    one.launches(first)
    one.pushes(place)
    moved = one.folder().rename(one.results / "away")
    two.pulls(place)
    moved.rename(one.folder())
    one.ends(first)
    two.ends(first)
    assert what(one.pushes(place)) == ["newer"]
    assert what(two.pushes(place)) == ["kept"]


def test_who_saw_less_does_not_replace_who_saw_more(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.measures(first)
    one.pushes(place)
    two.pulls(place)
    two.measures(second)
    shutil.rmtree(two.folder() / "driver.lock", ignore_errors=True)
    (two.folder() / "exchange.json").unlink()  # attempts and results tell it alone
    assert what(two.pulls(place)) == ["older"]
    [sent] = two.pushes(place).pushed
    assert sent.what == "newer"
    assert state_of(one.store, RUN).digest in sent.state.lineage  # it is known from now on
    (one.folder() / "exchange.json").unlink()
    (one.folder() / "note.txt").write_text("only here")
    (one.folder() / "plan.json").write_text("as it was here")
    assert what(one.pushes(place)) == ["more files"]  # the note; nothing else changes
    two.pulls(place)
    assert (two.folder() / "note.txt").read_text() == "only here"
    with Machine(two.results.parent / "new") as new:
        new.pulls(place)
        assert new.files() == two.files()


def test_a_file_for_a_newer_state_makes_nobody_newer(place, machines, tmp_path: Path):
    """One stands at the first of three states, and the other place at the second."""
    one, two = machines
    other = place_of("other", tmp_path, ())
    first, second = one.begins().jobs
    one.pushes(place)
    two.pulls(place)
    two.measures(first)
    two.pushes(place)
    two.pushes(other)
    two.measures(second)
    two.pushes(place)
    (one.folder() / "note.txt").write_text("only here")
    assert what(one.pushes(place)) == ["more files"]
    assert what(one.pushes(other)) == ["more files"]
    one.pulls(other)
    assert [p.status.state for p in one.points()] == ["ok", "ok", "pending", "pending"]


def test_a_run_that_was_driven_at_two_places_is_refused_at_both(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.pushes(place)
    two.pulls(place)
    one.measures(first)
    two.measures(second)
    one.pushes(place)
    for refused in (two.pushes, two.pulls):
        with pytest.raises(
            UsageError, match=r"only here infx-.* only in the place infx-"
        ) as caught:
            refused(place)
        assert caught.value.code == "run-diverged"
    assert [p.status.state for p in two.points()] == ["pending", "pending", "ok", "ok"]


def test_a_verdict_found_later_stands_and_is_not_undone_by_who_did_not_hear_of_it(place, machines):
    one, two = machines
    one.whole()
    one.pushes(place)
    two.pulls(place)
    strict = Status("invalid", "errors", "found by a later infx")
    records = [replace(r, status=strict) for r in one.store.records(RUN)]
    one.store.replace(records)
    assert what(one.pushes(place)) == ["newer"]
    assert what(two.pushes(place)) == ["older"]
    assert what(two.pulls(place)) == ["newer"]
    assert {p.status for p in two.points()} == {strict}


def test_files_that_only_one_side_has_are_kept_by_both(place, machines):
    one, two = machines
    one.whole()
    (one.folder() / "note-one.txt").write_text("one")
    one.pushes(place)
    (one.folder() / "note-one.txt").unlink()
    (one.folder() / "note-two.txt").write_text("two")
    assert what(one.pushes(place)) == ["more files"]
    two.pulls(place)
    assert {"note-one.txt", "note-two.txt"} <= two.files().keys()


def test_runs_are_chosen_by_name(place, machines):
    one, two = machines
    for run_id in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        one.whole(run_id)
        one.pushes(place, run_id)
    two.pulls(place, "last")
    assert [run.run_id for run in two.store.runs()] == ["20260102-000000-bbbb"]
    two.pulls(place, "20260101")
    assert len(two.store.runs()) == 2
    with pytest.raises(UsageError, match=r"there is no run in .* called `2027`"):
        two.pulls(place, "2027")


def test_a_run_that_is_driven_here_is_not_replaced(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.measures(first)
    one.pushes(place)
    two.pulls(place)
    one.measures(second)
    one.pushes(place)
    with RunLock(two.folder()), pytest.raises(UsageError, match="is driven by pid"):
        two.pulls(place)
    assert [p.status.state for p in two.points()] == ["ok", "ok", "pending", "pending"]
    with RunLock(one.folder()):
        assert what(one.pulls(place)) == ["kept"]


def test_what_a_driven_run_lacks_keeps_no_other_from_coming(place, machines):
    one, two = machines
    one.whole()
    (one.folder() / "note.txt").write_text("once there")
    one.pushes(place)
    (one.folder() / "note.txt").unlink()
    two.whole("20260103-000000-bbbb")
    two.pushes(place, "20260103-000000-bbbb")
    with RunLock(one.folder()):
        assert what(one.pulls(place)) == ["kept", "new"]
    assert what(one.pulls(place)) == ["more files", "kept"]


def test_a_run_that_cannot_come_keeps_no_other_from_coming(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.pushes(place)
    two.pulls(place)
    one.measures(first)
    two.measures(second)
    one.whole("20260103-000000-bbbb")
    one.pushes(place, RUN, "20260103-000000-bbbb")
    with pytest.raises(UsageError, match="went on here and elsewhere"):
        two.pulls(place)
    assert [p.status for p in two.points("20260103-000000-bbbb")] == [OK] * 4


def test_the_project_of_another_machine_becomes_this_ones(place, machines, tmp_path: Path):
    one, two = machines
    one.project = tmp_path / "gone"
    one.whole()
    one.pushes(place)
    two.pulls(place)
    assert two.row().project == str(two.project)
    shutil.move(two.results / "store.sqlite", tmp_path / "lost.sqlite")
    with Machine(tmp_path / "three") as three:
        assert gather(three.store, two.folder(), judge).run.project == str(two.project)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_a_damaged_parcel_is_refused_and_changes_nothing(machines, tmp_path: Path, damage: str):
    one, two = machines
    place = place_of("shared", tmp_path, ())
    one.whole()
    one.pushes(place)
    [parcel] = (tmp_path / "shared/runs").iterdir()
    data = bytearray(parcel.read_bytes())
    data[len(data) // 2] ^= 0xFF
    whole = parcel.read_bytes()
    parcel.write_bytes({"cut": whole[:-200], "flipped": data, "text": b"hello"}[damage])
    with pytest.raises(InfxError) as caught:
        two.pulls(place)
    assert caught.value.code in ("parcel-broken", "bad-parcel")
    assert two.store.runs() == []
    assert [p.name for p in two.results.rglob("*") if p.suffix == ".json"] == []
    assert not list(two.results.glob(".pull-*"))


def test_light_leaves_heavy_exports_and_their_verdicts_stand(place, machines):
    one, two = machines
    first, _ = one.begins().jobs
    one.measures(first, heavy=HEAVY)
    [told] = one.pushes(place, light=True).pushed
    assert sum(told.left.values()) == 2 * HEAVY
    two.pulls(place)
    strict = Status("invalid", "no-export")

    def sees_nothing(record, folder):
        there = any((folder / record.artifacts["aiperf"]).glob("*"))
        return replace(record, status=OK if there else strict)

    found = gather(two.store, two.folder(), sees_nothing)
    assert [r.status for r in found.records] == [OK, OK]
    assert not any(two.folder().rglob("profile_export.jsonl"))
    with Machine(two.results.parent / "anew") as anew:  # a lost store: the folder tells it
        assert [r.status for r in gather(anew.store, two.folder(), sees_nothing).records] == [
            OK
        ] * 2


def test_light_keeps_what_the_place_and_the_machine_have_in_full(place, machines):
    one, two = machines
    first, second = one.begins().jobs
    one.measures(first, heavy=HEAVY)
    one.pushes(place)
    two.pulls(place)
    one.measures(second, heavy=HEAVY)
    one.pushes(place, light=True)
    two.pulls(place)
    assert len(list(two.folder().rglob("profile_export.jsonl"))) == 2
    assert what(one.pushes(place)) == ["more files"]
    two.pulls(place)
    assert len(list(two.folder().rglob("profile_export.jsonl"))) == 4
    assert what(one.pushes(place, light=True)) == ["kept"]
    assert what(one.pulls(place)) == ["kept"]


def test_a_judge_of_a_light_run_with_all_evidence_judges_anew(place, machines):
    one, two = machines
    one.measures(one.begins().jobs[0], heavy=HEAVY)
    one.pushes(place, light=True)
    two.pulls(place)
    one.pushes(place)
    two.pulls(place)
    strict = Status("invalid", "errors")
    found = gather(two.store, two.folder(), lambda record, _: replace(record, status=strict))
    assert {r.status for r in found.records} == {strict}


@pytest.mark.parametrize("ahead", [False, True])
def test_a_folder_that_was_lost_comes_back(place, machines, ahead: bool):
    one, _ = machines
    first, second = one.begins().jobs
    one.measures(first)
    one.pushes(place)
    if ahead:
        one.measures(second, LOST)
    points = one.points()
    shutil.rmtree(one.folder())
    assert what(one.pulls(place)) == ["more files" if ahead else "new"]
    assert one.points() == points
    assert len(list(one.folder().rglob("point.json"))) == 2
    assert what(one.pushes(place)) == ["newer" if ahead else "kept"]


def test_places_that_are_none_say_so(machines, tmp_path: Path):
    one, two = machines
    one.whole()
    for name in ("nowhere", "nowhere.tar.gz"):
        with pytest.raises(UsageError, match="push a run there first"):
            two.pulls(place_of(name, tmp_path, ()))
    with pytest.raises(UsageError, match="is a results folder"):
        one.pushes(place_of(str(two.results), tmp_path, ()))
    with pytest.raises(UsageError, match="is a results folder"):
        one.pulls(place_of(str(two.results), tmp_path, ()))
    with pytest.raises(UsageError, match="is an address"):
        place_of("https://example.org/x", tmp_path, ())
    (tmp_path / "other.tar.gz").write_bytes(b"not one")
    with pytest.raises(InfraError, match="cut or damaged"):
        one.pushes(place_of("other.tar.gz", tmp_path, ()))
