"""What people call points: by label, by identity, of which time, in which run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import UsageError
from infx.domain.plan import Plan
from infx.domain.status import OK, Status
from infx.plan.repeats import repeated
from infx.store import FILE, RunRow, Store, find_point, find_recorded, find_run
from tests.store.tiny_plans import job, plan, record, run_row

WHOLE = repeated(plan(job(0), job(1)), 2)
POINT = WHOLE.points[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / FILE) as opened:
        yield opened


def made(store: Store, run_id: str, whole: Plan = WHOLE, **fields: object) -> RunRow:
    row = replace(run_row(store.path.parent, run_id), **fields)
    store.create_run(row, whole)
    return row


def measured(store: Store, row: RunRow, status: Status = OK) -> None:
    first = WHOLE.jobs[0]
    store.save(record(POINT, row.run_id, first.job_id, status=status))


@pytest.mark.parametrize("name", [POINT.label, POINT.point_id[:8], POINT.point_id[:20]])
def test_without_a_word_it_is_the_first_time(store: Store, name: str) -> None:
    points = store.points(made(store, "r").run_id)
    assert find_point(points, name).key == (WHOLE.jobs[0].job_id, POINT.point_id)
    assert find_point(points, f"{name}-r2").key == (WHOLE.jobs[2].job_id, POINT.point_id)


def test_a_store_without_runs_says_so(store: Store) -> None:
    for text in ("last", "20261130"):
        with pytest.raises(UsageError, match="there are no runs in") as caught:
            find_run(store, text)
        assert "infx sweep" in caught.value.hint


def test_a_time_that_is_not_there_is_no_point(store: Store) -> None:
    points = store.points(made(store, "r").run_id)
    with pytest.raises(UsageError, match="no point in the run called") as caught:
        find_point(points, f"{POINT.label}-r3")
    assert caught.value.code == "unknown-point"


def test_a_name_of_several_points_says_which(store: Store) -> None:
    points = store.points(made(store, "r").run_id)
    with pytest.raises(UsageError, match="names 2: ") as caught:
        find_point(points, POINT.name[:-1])
    assert (caught.value.code, caught.value.hint) == ("unknown-point", "write more of it")


def test_the_record_is_that_of_the_newest_run_in_which_the_point_is_ok(store: Store) -> None:
    old, middle, new = (made(store, name, created_s=n) for n, name in enumerate("abc"))
    measured(store, old)
    measured(store, middle)
    measured(store, new, Status("invalid", "errors"))
    for name in (POINT.label, POINT.point_id[:9], f"{POINT.label}-r2"):
        assert find_recorded(store, name)[0] == middle
    again = made(store, "d", created_s=9, source=f"infx repro {POINT.label} --run b")
    measured(store, again)
    assert find_recorded(store, POINT.label)[0] == middle  # what reproduced it is no record of it
    assert (again.command, middle.command) == (again.source, "infx sweep tiny.yaml")


def test_what_no_run_has_is_said_with_the_folder(store: Store) -> None:
    made(store, "r")
    with pytest.raises(UsageError, match=f"no point in {store.path.parent} called `tyni`"):
        find_recorded(store, "tyni")
