from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.slurm.times import duration_s, moment


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784),
        ("2-00:00:00", 172800),
        ("1:00:00", 3600),
        ("00:10:00", 600),
        ("10:00", 600),
        ("2:00", 120),
        ("0:00", 0),
        ("90", 5400),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("UNLIMITED", None),
        ("N/A", None),
        ("NONE", None),
        ("Partition_Limit", None),
        ("NOT_SET", None),
        ("INVALID", None),
        ("1:2:3:4", None),
        ("-5:00", None),
        ("", None),
    ],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert duration_s(text) == seconds


def as_slurm_writes(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


@settings(max_examples=50)
@given(st.integers(min_value=0, max_value=10**9))
def test_a_duration_comes_back(seconds: int) -> None:
    assert duration_s(as_slurm_writes(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-29T20:49:06", 1795985346.0),
        ("1795985346", 1795985346.0),  # SLURM_TIME_FORMAT=%s
        ("2026-13-29T20:49:06", None),
        ("Unknown", None),
        ("None", None),
        ("N/A", None),
        ("20:49:06", None),
        ("", None),
    ],
)
def test_times_of_day(text: str, seconds: float | None) -> None:
    assert moment(text) == seconds


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("tokyo")
def test_a_time_is_utc_wherever_infx_runs() -> None:
    assert moment("2026-11-29T20:49:06") == 1795985346.0


@settings(max_examples=50)
@given(st.text())
def test_garbage_is_no_time(text: str) -> None:
    duration_s(text)
    moment(text)
