"""Making a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.launch import runs
from infx.launch.runs import create_run, open_store
from tests.store.tiny_plans import job, plan


def test_a_name_that_is_taken_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["one", "one", "one", "two"])
    monkeypatch.setattr(runs, "new_run_id", lambda _: next(names))
    with open_store(tmp_path) as store:
        made = [
            create_run(store, tmp_path, plan(job(0)), source="x", project=tmp_path, executor="x")
            for _ in range(2)
        ]
    assert [run.run_id for run in made] == ["one", "two"]
    assert [Path(run.folder).name for run in made] == ["one", "two"]
