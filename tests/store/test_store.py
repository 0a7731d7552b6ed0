"""The store keeps what it was told, whatever happens to the process that told it."""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.domain.errors import InfraError, UsageError
from infx.domain.outcome import Ending
from infx.domain.serial import encode
from infx.domain.status import OK, Status
from infx.launch.runs import open_store
from infx.plan.repeats import repeated
from infx.store import Store, best, kept, rank
from infx.store.schema import MIGRATIONS, VERSION
from tests.store.tiny_plans import job, plan, record, run_row, stands

STATUSES = st.sampled_from(
    [
        OK,
        Status("invalid", "errors"),
        Status("failed", "server-hung"),
        Status("failed", "job-lost"),
        Status("cancelled"),
        Status("measured"),
        Status("pending"),
    ]
)


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


def created(store: Store, tmp_path: Path):
    row, whole = run_row(tmp_path), plan()
    store.create_run(row, whole)
    return row, whole


def test_a_run_starts_with_every_point_pending(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    assert store.runs() == [row]
    assert [p.point_id for p in store.points(row.run_id)] == [p.point_id for p in whole.points]
    assert {p.status.state for p in store.points(row.run_id)} == {"pending"}
    assert store.records(row.run_id) == []


def test_a_run_is_found_beside_a_store_that_was_moved(tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    with open_store(old) as store:
        row, _ = created(store, old)
        Path(row.folder).mkdir(parents=True)
    old.rename(new)
    with open_store(new) as store:
        [run] = store.runs()
    assert Path(run.folder) == new / "runs" / row.run_id


def test_creating_a_run_again_changes_nothing(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    first = whole.jobs[0]
    store.save(record(first.points[0], row.run_id, first.job_id))
    store.create_run(row, whole)
    assert len(store.records(row.run_id)) == 1


def test_a_record_comes_back_as_it_was(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    first = whole.jobs[0]
    written = record(first.points[0], row.run_id, first.job_id, status=Status("invalid", "errors"))
    store.save(written)
    assert store.records(row.run_id) == [written]
    found = store.points(row.run_id)[0]
    assert (found.status, found.attempt) == (written.status, 1)


def test_attempts_count_up_and_an_intent_stands_before_a_launch(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    job_id = whole.jobs[0].job_id
    [first] = store.next_attempts(row.run_id, [job_id])
    assert store.attempts(row.run_id) == []  # asked, not intended
    assert first.unique_name == f"infx-{row.run_id}-{job_id[:8]}-a1"
    first = replace(first, batch="infx-b", task=3)
    store.intend([first])
    [intended] = store.attempts(row.run_id, open_only=True)
    assert replace(intended, started_s=0) == first
    assert time.time() - intended.started_s < 60  # nobody knows better than its intent
    store.launched({first.unique_name: "77"})
    lost = Ending(outcome="infra", code="node-failed", sentence="n", fingerprint="f", node="n1")
    store.end_attempt(first.unique_name, [], lost)
    assert store.endings(row.run_id) == {job_id: [lost]}
    [second] = store.next_attempts(row.run_id, [job_id])
    assert second.number == 2
    store.intend([second])
    assert store.attempts(row.run_id)[0].scheduler_id == "77"
    assert [a.number for a in store.attempts(row.run_id, open_only=True)] == [2]


def test_a_withdrawn_intent_leaves_its_number_free(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    ids = [job.job_id for job in whole.jobs]
    attempts = store.next_attempts(row.run_id, ids)
    store.intend(attempts)
    store.withdraw([attempts[0].unique_name])
    assert [a.job_id for a in store.attempts(row.run_id, open_only=True)] == ids[1:]
    assert store.next_attempts(row.run_id, ids)[0].number == 1


@given(st.lists(STATUSES, min_size=1, max_size=4))
def test_the_record_that_stands_is_ok_then_complete_then_newest(statuses):
    server = job()
    records = [record(server.points[0], "r", "j", n, s) for n, s in enumerate(statuses, 1)]
    stands = best(records)
    assert rank(stands.status) == max(rank(s) for s in statuses)
    same = [r for r in records if rank(r.status) == rank(stands.status)]
    assert stands == same[-1]


def test_a_failure_of_the_machine_is_no_result():
    for name, code in CODES.items():
        if code.family in ("failed", "infra"):
            assert kept(Status("failed", name)) == (code.family == "failed")
    assert not kept(Status("cancelled"))
    assert not kept(Status("pending"))


def test_saving_never_loses_a_better_record(store: Store, tmp_path: Path):
    row, whole = created(store, tmp_path)
    first = whole.jobs[0]
    good = record(first.points[0], row.run_id, first.job_id, 1)
    store.save(good)
    store.save(record(first.points[0], row.run_id, first.job_id, 2, Status("failed", "job-lost")))
    assert store.records(row.run_id) == [good]


@pytest.mark.parametrize("canary", [None, False, True])
def test_how_a_run_was_asked_and_by_whom_it_is_driven_are_kept(
    store: Store, tmp_path: Path, canary: bool | None
):
    asked = replace(run_row(tmp_path), canary=canary, fail_fast=canary is None)
    store.create_run(asked, plan())
    assert store.runs() == [asked]
    store.set_state(asked.run_id, "running")
    assert store.runs() == [replace(asked, host=socket.gethostname())]


def test_a_store_of_a_newer_infx_is_refused(tmp_path: Path):
    path = tmp_path / "store.sqlite"
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(UsageError, match=f"version {VERSION + 1}.*up to {VERSION}") as caught:
        Store(path)
    assert caught.value.code == "store-newer"


def test_an_older_store_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "store.sqlite"
    Store(path).close()
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",))
    monkeypatch.setattr("infx.store.schema.MIGRATIONS", later)
    monkeypatch.setattr("infx.store.schema.VERSION", len(later))
    Store(path).close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert "note" in [row[1] for row in db.execute("PRAGMA table_info(runs)")]


def of_version(path: Path, version: int) -> sqlite3.Connection:
    """A store as an infx of that schema made it."""
    db = sqlite3.connect(path)
    for statements in MIGRATIONS[:version]:
        for statement in statements:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")
    return db


LATER = ("host", "canary", "fail_fast")
"""Columns of a run that these versions did not have."""


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_store_is_found_whole(tmp_path: Path, version: int):
    row, whole = run_row(tmp_path), plan()
    db = of_version(tmp_path / "store.sqlite", version)
    told = {name: told for name, told in asdict(row).items() if name not in LATER}
    db.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(told))})", tuple(told.values()))
    for place, of in enumerate(whole.jobs):
        db.execute(
            "INSERT INTO jobs (run_id, job_id, position, name) VALUES (?, ?, ?, ?)",
            (row.run_id, of.job_id, place, of.name),
        )
        name = f"infx-{place}"
        known = (name, row.run_id, of.job_id, 1, "77", 5.0, 6.0, 7.0)
        db.execute(
            "INSERT INTO attempts (unique_name, run_id, job_id, number, scheduler_id, intended_s,"
            " started_s, ended_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            known,
        )
        for n, point in enumerate(of.points):
            kept_record = encode(record(point, row.run_id, of.job_id)).decode()
            db.execute(
                "INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, 'ok', '', '', 1, ?)",
                (row.run_id, point.point_id, of.job_id, n, point.label, point.mode, kept_record),
            )
    db.commit()
    db.close()
    with Store(tmp_path / "store.sqlite") as store:
        assert store.runs() == [row]
        found = store.points(row.run_id)
        assert [p.key for p in found] == list(stands(whole))
        assert {(p.repeat, p.status.state, p.attempt) for p in found} == {(1, "ok", 1)}
        assert [r.point for r in store.records(row.run_id)] == list(whole.points)
        assert [(a.scheduler_id, a.repeat) for a in store.attempts(row.run_id)] == [("77", 1)] * 2
        [following, _] = store.next_attempts(row.run_id, [of.job_id for of in whole.jobs])
        assert following.number == 2
        store.save(record(whole.points[0], row.run_id, whole.jobs[0].job_id, 2))
        assert store.points(row.run_id)[0].attempt == 2


def test_a_point_is_kept_for_each_time_that_it_is_measured(store: Store, tmp_path: Path):
    row, whole = run_row(tmp_path), repeated(plan(job(0)), 3)
    store.create_run(row, whole)
    first, second, third = whole.jobs
    good = record(first.points[0], row.run_id, first.job_id)
    lost = record(second.points[0], row.run_id, second.job_id, 1, Status("failed", "job-lost"))
    for one in (good, lost):
        store.save(one)
    rows = store.points(row.run_id)
    assert [(p.repeat, p.status.state) for p in rows if p.point_id == first.points[0].point_id] == [
        (1, "ok"),
        (2, "failed"),
        (3, "pending"),
    ]
    assert [p.shown for p in rows[::2]] == [p.label for p in rows[:1]] + [
        f"{rows[0].label}-r{n}" for n in (2, 3)
    ]
    assert store.records(row.run_id) == [good, lost]
    attempts = store.next_attempts(row.run_id, [third.job_id, first.job_id])
    assert [a.repeat for a in attempts] == [3, 1]
    store.intend(attempts)
    assert [a.repeat for a in store.attempts(row.run_id)] == [3, 1]


def test_a_file_that_is_no_store_says_so(tmp_path: Path):
    path = tmp_path / "store.sqlite"
    path.write_text("this is not a database, it is a sentence that is long enough\n" * 20)
    with pytest.raises(InfraError) as caught:
        Store(path)
    assert caught.value.code == "store-corrupt"


def test_two_processes_may_open_a_new_store_at_once(tmp_path: Path):
    path = tmp_path / "store.sqlite"
    opener = f"from infx.store import Store; from pathlib import Path; Store(Path({str(path)!r}))"
    children = [subprocess.Popen([sys.executable, "-c", opener]) for _ in range(4)]
    assert [child.wait(30) for child in children] == [0, 0, 0, 0]


@pytest.mark.slow
def test_killed_at_any_moment_the_store_is_whole(tmp_path: Path):
    chance = random.Random(4)
    for round_ in range(20):
        results = tmp_path / str(round_)
        results.mkdir()
        confirmed = _write_until_killed(results, chance.uniform(0, 0.08))
        with Store(results / "store.sqlite") as store:
            _check_whole(store, confirmed)


def _write_until_killed(results: Path, seconds: float) -> list[str]:
    """Fork a process that writes, kill it after ``seconds``, return what it had confirmed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _write(results, writer)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as told:
        assert told.readline() == "ready\n"
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [line for line in told.read().splitlines() if line.count(" ") == 1]


def _write(results: Path, writer: int) -> None:
    whole, row = plan(), run_row(results)
    with Store(results / "store.sqlite") as store:
        store.create_run(row, whole)
        os.write(writer, b"ready\n")
        while True:
            for server in whole.jobs:
                [attempt] = store.next_attempts(row.run_id, [server.job_id])
                store.intend([attempt])
                store.launched({attempt.unique_name: str(attempt.number)})
                number = attempt.number
                found = [record(p, row.run_id, server.job_id, number) for p in server.points]
                store.end_attempt(attempt.unique_name, found, Ending(outcome="ok"))
                os.write(writer, f"{server.job_id} {number}\n".encode())


def _check_whole(store: Store, confirmed: list[str]) -> None:
    [run] = store.runs()
    ended = {(a.job_id, a.number) for a in store.attempts(run.run_id) if a.ended_s}
    for line in confirmed:  # nothing that was confirmed is lost
        job_id, number = line.split()
        assert (job_id, int(number)) in ended
    assert len(store.attempts(run.run_id, open_only=True)) <= 1
    standing = {(p.job_id, p.attempt) for p in store.points(run.run_id) if p.attempt}
    for job_id in {job_id for job_id, _ in ended}:  # an end and its records came together
        newest = max(number for other, number in ended if other == job_id)
        assert {number for other, number in standing if other == job_id} == {newest}
    assert len(store.records(run.run_id)) == sum(p.attempt > 0 for p in store.points(run.run_id))
