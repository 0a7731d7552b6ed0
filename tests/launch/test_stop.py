"""What a signal, a file or the clock asks of a drive."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from infx.launch.stop import CANCEL_FILE, SIGNALS, Stop


def test_a_second_request_interrupts(tmp_path: Path):
    with Stop(tmp_path) as stop:
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGHUP)
    assert not stop.detached


@pytest.mark.parametrize("number", SIGNALS)
def test_where_the_run_goes_on_a_signal_only_lets_go(tmp_path: Path, number: signal.Signals):
    before = signal.getsignal(number)
    with Stop(tmp_path, letting_go=SIGNALS) as stop:
        for _ in range(3):
            os.kill(os.getpid(), number)
        assert stop.detached
        assert not stop.requested
    assert signal.getsignal(number) is before


def test_others_still_stop_it(tmp_path: Path):
    with Stop(tmp_path, letting_go=(signal.SIGHUP,)) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
        assert not stop.detached


def test_a_time_lets_go_too(tmp_path: Path):
    assert Stop(tmp_path, until_s=time.time()).detached
    assert not Stop(tmp_path, until_s=time.time() + 60).detached


def test_only_who_begins_a_drive_forgets_an_earlier_cancel(tmp_path: Path):
    (tmp_path / CANCEL_FILE).touch()
    with Stop(tmp_path) as stop:
        assert stop.requested
        stop.forget()
        assert not stop.requested
