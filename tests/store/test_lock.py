"""One writer a run, for as long as its process lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infx.domain.errors import UsageError
from infx.store import RunLock, holder

HOLD = """
import sys, time
from pathlib import Path
from infx.store import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_driver_is_told_who_the_first_is(tmp_path: Path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert child.stdout.readline() == "held\n"
    assert f"pid {child.pid} on " in holder(tmp_path)
    with pytest.raises(UsageError, match=f"driven by pid {child.pid}") as caught, RunLock(tmp_path):
        pass
    assert caught.value.code == "run-active"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert holder(tmp_path) == ""
    with RunLock(tmp_path):
        assert f"pid {os.getpid()} on " in holder(tmp_path)
    assert holder(tmp_path) == ""


def test_a_folder_that_was_never_driven_has_no_holder(tmp_path: Path):
    assert holder(tmp_path) == ""
