"""A lost store is rebuilt from the runs' folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import UsageError
from infx.domain.record import PointRecord
from infx.domain.serial import encode_pretty
from infx.domain.status import OK, Status
from infx.job import result
from infx.plan.repeats import repeated
from infx.plan.saved import write_plan
from infx.store import Store, attempt_dir, gather
from infx.store.layout import RESULT
from tests.store.tiny_plans import job, judge, plan, record, run_row, write_point

MEASURED = Status("measured")
HUNG = Status("failed", "server-hung")


@pytest.fixture
def run(tmp_path: Path):
    """A run's folder on disk and an empty store beside it."""
    row, whole = run_row(tmp_path), plan(job(0), job(1))
    folder = Path(row.folder)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(encode_pretty(row))
    write_plan(whole, folder / "plan.json")
    with Store(tmp_path / "store.sqlite") as store:
        yield store, folder, whole


def put(run, server: int, number: int, status: Status, which: int = 0) -> PointRecord:
    _, folder, whole = run
    found = whole.jobs[server]
    written = record(found.points[which], folder.name, found.job_id, number, status)
    write_point(folder, found, written)
    return written


def test_an_empty_store_is_filled_and_judged(run):
    store, folder, whole = run
    put(run, 0, 1, MEASURED)
    put(run, 1, 1, HUNG)
    found = gather(store, folder, judge)
    assert found.plan == whole
    assert [r.status for r in found.records] == [OK, HUNG]
    states = [p.status.state for p in store.points(folder.name)]
    assert states == ["ok", "pending", "failed", "pending"]
    assert len(store.attempts(folder.name)) == 2


def test_the_newest_complete_attempt_wins_and_ok_beats_failed(run):
    store, folder, _ = run
    put(run, 0, 1, HUNG)
    put(run, 0, 2, Status("invalid", "errors"))
    put(run, 0, 3, Status("cancelled"))
    put(run, 1, 1, MEASURED)
    put(run, 1, 2, HUNG)
    first, second = gather(store, folder, judge).records
    assert (first.status.state, first.attempt.number) == ("invalid", 2)
    assert (second.status.state, second.attempt.number) == ("ok", 1)


def put_spec(run, server: int, number: int, told: dict[str, object]) -> Path:
    _, folder, whole = run
    attempt = attempt_dir(folder, whole.jobs[server], number)
    attempt.mkdir(parents=True, exist_ok=True)
    (attempt / "job.json").write_text(json.dumps({"unique_name": "n", **told}))
    return attempt


def test_what_a_scheduler_may_still_run_is_open(run):
    """The store was lost while jobs went on: a resume must follow them, not submit them anew."""
    store, folder, whole = run
    assert RESULT == result.FILE
    put_spec(run, 0, 1, {"batch": "infx-array", "task": 3})
    put_spec(run, 0, 2, {"batch": "infx-array", "task": 4})
    put_spec(run, 1, 1, {"batch": "infx-array", "task": 5})
    gather(store, folder, judge)
    found = store.attempts(folder.name, open_only=True)
    assert [(a.job_id, a.number, a.batch, a.task) for a in found] == [
        (whole.jobs[0].job_id, 2, "infx-array", 4),
        (whole.jobs[1].job_id, 1, "infx-array", 5),
    ]


@pytest.mark.parametrize("case", ["local", "ended", "torn"])
def test_what_can_run_no_more_has_ended(run, case: str):
    store, folder, _ = run
    attempt = put_spec(run, 0, 1, {} if case == "local" else {"batch": "b"})
    if case == "ended":
        (attempt / RESULT).write_text("{}")
    if case == "torn":
        (attempt / "job.json").write_text('{"batch": "b')
    gather(store, folder, judge)
    assert len(store.attempts(folder.name)) == 1
    assert store.attempts(folder.name, open_only=True) == []


def test_an_attempt_without_records_is_still_counted(run):
    store, folder, whole = run
    gone = write_point(folder, whole.jobs[0], put(run, 0, 1, MEASURED))
    gone.unlink()
    gather(store, folder, judge)
    [attempt] = store.next_attempts(folder.name, [whole.jobs[0].job_id])
    assert attempt.number == 2


def test_a_verdict_that_changed_replaces_the_old_one(run):
    store, folder, _ = run
    put(run, 0, 1, MEASURED)
    gather(store, folder, judge)
    strict = gather(store, folder, lambda r, _: replace(r, status=Status("invalid", "errors")))
    assert strict.records[0].status.code == "errors"


def test_what_only_the_store_knows_stays(run):
    store, folder, whole = run
    put(run, 0, 1, MEASURED)
    gather(store, folder, judge)
    second = whole.jobs[1]
    lost = Status("failed", "job-lost", "gone")
    store.save(record(second.points[0], folder.name, second.job_id, 1, lost))
    assert gather(store, folder, judge).records[1].status == lost


def test_an_unreadable_record_is_reported_and_costs_no_other(run):
    store, folder, whole = run
    put(run, 0, 1, MEASURED, which=1)
    path = write_point(folder, whole.jobs[0], put(run, 0, 1, MEASURED))
    path.write_text(path.read_text()[:40])
    found = gather(store, folder, judge)
    assert [f.code for f in found.findings] == ["bad-record"]
    assert len(found.records) == 1


def test_a_fault_of_the_judge_is_that_points_fault(run):
    store, folder, _ = run
    put(run, 0, 1, MEASURED)

    def broken(*_):
        raise KeyError("window")

    [found] = gather(store, folder, broken).records
    assert (found.status.code, "KeyError: 'window'" in found.status.sentence) == ("internal", True)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path):
    with Store(tmp_path / "store.sqlite") as store, pytest.raises(UsageError) as caught:
        gather(store, tmp_path, judge)
    assert caught.value.code == "not-a-run"
    assert "infx status" in caught.value.hint


def test_each_time_that_a_point_is_measured_stands_by_itself(tmp_path: Path):
    row, whole = run_row(tmp_path), repeated(plan(job(0, points=1)), 2)
    folder = Path(row.folder)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(encode_pretty(row))
    write_plan(whole, folder / "plan.json")
    for of, status in zip(whole.jobs, (MEASURED, HUNG), strict=True):
        made = record(of.points[0], row.run_id, of.job_id, status=status)
        attempt = replace(made.attempt, repeat=of.repeat)
        write_point(folder, of, replace(made, attempt=attempt))
    with Store(tmp_path / "store.sqlite") as store:
        found = gather(store, folder, judge)
        assert [(r.attempt.repeat, r.status) for r in found.records] == [(1, OK), (2, HUNG)]
        assert [(p.repeat, p.status) for p in store.points(row.run_id)] == [(1, OK), (2, HUNG)]
        assert [a.repeat for a in store.attempts(row.run_id)] == [1, 2]
