"""A file is whole or not there, and a full disk is said to be one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.domain.record import Attempt, PointRecord
from infx.domain.serial import decode
from infx.domain.status import Status
from infx.job.record import fresh_folder, write_record, write_whole
from tests.job.jobs import arm, point


def test_a_record_comes_back(tmp_path: Path) -> None:
    attempt = Attempt(run_id="r", job_id="j", number=1)
    written = PointRecord(point=point(arm()), status=Status("measured"), attempt=attempt)
    write_record(written, tmp_path / "p")
    assert decode((tmp_path / "p" / "point.json").read_bytes(), PointRecord) == written
    assert [file.name for file in (tmp_path / "p").iterdir()] == ["point.json"]


def test_a_full_disk_leaves_the_old_file(tiny_disk: Path) -> None:
    write_whole(tiny_disk / "point.json", b"old")
    with pytest.raises(InfraError) as caught:
        write_whole(tiny_disk / "point.json", bytes(1 << 20))
    assert caught.value.code == "disk-full"
    assert str(tiny_disk / "point.json") in str(caught.value)
    assert "infx resume" in str(caught.value)
    assert (tiny_disk / "point.json").read_bytes() == b"old"
    assert [file.name for file in tiny_disk.iterdir()] == ["point.json"]


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(tmp_path / "point.json", b"old")

    def full(_handle: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfraError) as caught:
        write_whole(tmp_path / "point.json", b"new")
    assert caught.value.code == "disk-full"
    assert (tmp_path / "point.json").read_bytes() == b"old"


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError) as caught:
        write_whole(tmp_path / "file" / "point.json", b"")
    assert caught.value.code == "results-unwritable"


def test_an_existing_folder_is_moved_away(tmp_path: Path) -> None:
    for content in ("first", "second", "third"):
        (fresh_folder(tmp_path / "aiperf") / "export").write_text(content)
    assert (tmp_path / "aiperf" / "export").read_text() == "third"
    assert (tmp_path / "aiperf.old1" / "export").read_text() == "first"
    assert (tmp_path / "aiperf.old2" / "export").read_text() == "second"
