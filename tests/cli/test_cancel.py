"""A cancel and a drive that begins at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import infx.store
from infx.cli.cancel import _ask, stop
from infx.launch.runs import create_run, open_store
from infx.launch.stop import CANCEL_FILE, Stop
from infx.store import RunLock, holder
from tests.launch.lab_fixture import until
from tests.store.tiny_plans import plan


def test_a_cancel_is_not_forgotten_by_a_drive_that_begins(tmp_path: Path) -> None:
    """A drive has the lock before it listens, and then removes what an earlier drive was told."""
    with ThreadPoolExecutor(1) as pool:
        with RunLock(tmp_path):
            asked = pool.submit(_ask, tmp_path, holder(tmp_path))
            until((tmp_path / CANCEL_FILE).exists, 10, lambda: "no file")
            with Stop(tmp_path) as stop:
                stop.forget()
                until(lambda: stop.requested, 5, lambda: "the request was forgotten")
        assert asked.result(10).startswith("stopped; it was driven by pid ")


def test_a_drive_that_began_between_a_look_and_the_lock_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []

    def holder_once_late(folder: Path) -> str:
        looks.append(folder)
        return holder(folder) if len(looks) > 1 else ""

    with open_store(tmp_path) as store:
        run = create_run(store, tmp_path, plan(), source="x", project=tmp_path, executor="local")
    monkeypatch.setattr(infx.store, "holder", holder_once_late)

    def cancel() -> str:
        with open_store(tmp_path) as store:
            return stop(store, run)

    folder = Path(run.folder)
    with ThreadPoolExecutor(1) as pool:
        with RunLock(folder):
            asked = pool.submit(cancel)
            until(lambda: (folder / CANCEL_FILE).exists() or asked.done(), 10, lambda: "no file")
        assert asked.result(10).startswith("stopped; it was driven by pid ")
