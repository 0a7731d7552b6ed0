from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.errors import ConfigError
from infx.job.result import Result, damage, evidence, read_result, write_result

FILES = {
    "server.log": b"ready\n",
    "points/a-1/point.json": b"{}",
    "points/a-1/aiperf/profile_export.jsonl": b"x" * 5000,
    "points/a-1/aiperf/empty.txt": b"",
}
RESULT = Result(
    run_id="r",
    job_id="j",
    attempt=1,
    unique_name="infx-r-j-a1",
    scheduler_id="7_0",
    node="node1",
    started_s=1.0,
    ended_s=2.0,
    status="ended",
    points={"a-1": "measured"},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An attempt's folder with evidence, files that are none, and its result."""
    place = tmp_path / "a1"
    for name, content in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    for name in ("job.json", "claim", "events.jsonl", "infx.log", "alive.lock"):
        (place / name).write_text("grows")
    (place / "points" / ".point.json.1.part").write_text("torn")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("private")
    (place / "link").symlink_to(tmp_path / "secret" / "key")
    (place / "linked").symlink_to(tmp_path / "secret")
    write_result(replace(RESULT, manifest=evidence(place)), place)
    return place


def read(folder: Path) -> Result:
    found = read_result(folder)
    assert found is not None
    return found


def test_all_evidence_and_nothing_else(folder: Path) -> None:
    manifest = read(folder).manifest
    assert [told.path for told in manifest] == sorted(FILES)
    assert {told.path: told.bytes for told in manifest} == {n: len(c) for n, c in FILES.items()}
    assert evidence(folder) == manifest  # the result does not tell itself


def test_it_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    assert replace(read(folder), manifest=()) == RESULT
    assert read_result(tmp_path) is None


def test_what_still_grows_is_no_damage(folder: Path) -> None:
    (folder / "events.jsonl").write_text("more")
    (folder / "new").write_text("more")
    assert damage(folder, read(folder)) == []


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def alter(path: Path) -> None:
    path.write_bytes(b"y" + path.read_bytes()[1:])


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (Path.unlink, "is missing"),
        (cut, "has 4999 bytes, expected 5000"),
        (alter, "has other content"),
        (link, "is missing"),
    ],
)
def test_damage(harm: Callable[[Path], None], sentence: str, folder: Path) -> None:
    name = "points/a-1/aiperf/profile_export.jsonl"
    harm(folder / name)
    assert damage(folder, read(folder)) == [f"{name} {sentence}"]


def test_a_torn_file_is_no_result(folder: Path) -> None:
    (folder / "result.json").write_text('{"run_id": "r"')
    with pytest.raises(ConfigError):
        read_result(folder)


def test_hashing_takes_no_time(tmp_path: Path) -> None:
    """16 MiB took 0.05 s of CPU without SHA instructions; a job leaves a few MB."""
    (tmp_path / "big").write_bytes(bytes(16 << 20))
    started = time.process_time()
    evidence(tmp_path)
    assert time.process_time() - started < 1.0
