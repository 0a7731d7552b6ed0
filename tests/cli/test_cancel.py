"""A cancel and a drive that begins at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from infx.cli.cancel import _ask
from infx.launch.stop import CANCEL_FILE, Stop
from infx.store import RunLock, holder
from tests.launch.lab_fixture import until


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
