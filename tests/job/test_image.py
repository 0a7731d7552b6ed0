"""An image is imported once however many ask, and a file that is not whole is never used."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.job.image import image_key, imported, reference, whole
from tests.job.jobs import names
from tests.job.processes import wait_until

IMAGE, DIGEST = "registry.example/engine:1.2", "sha256:" + "ab" * 32
URI = f"docker://registry.example#engine:{DIGEST}"
BIN = Path(__file__).parent / "bin"


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The site's folder of images (not made yet), beside a log folder and a good enroot."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_ENROOT", "good")
    monkeypatch.setenv("FAKE_ENROOT_CALLS", str(tmp_path / "calls"))
    return tmp_path / "images"


def calls(images: Path) -> list[str]:
    file = images.parent / "calls"
    return file.read_text().splitlines() if file.exists() else []


def get(images: Path, digest: str = DIGEST) -> tuple[Path, list[str]]:
    told: list[str] = []
    return imported(IMAGE, digest, images, images.parent, told.append), told


def test_imported_once(images: Path) -> None:
    file, told = get(images)
    assert file == images / f"{'ab' * 32}.sqsh"
    assert whole(file)
    assert told == ["importing the image"]
    assert get(images) == (file, [])
    assert calls(images) == [URI]
    assert names(images) == [f"{'ab' * 32}.lock", file.name]


def test_without_a_digest_its_name_is_the_key(images: Path) -> None:
    file, _ = get(images, "")
    assert file.stem == image_key(IMAGE, "") != image_key("registry.example/engine:1.3", "")
    assert calls(images) == ["docker://registry.example#engine:1.2"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("fails", r"\(exit code 1\): \[ERROR\] URL https://registry.example/v2/ returned .* 401"),
        ("half", r"\(no whole squashfs file\): \[INFO\] Fetching image manifest"),
        ("garbage", r"\(no whole squashfs file\)"),
        ("empty", r"\(no whole squashfs file\)"),
    ],
)
def test_a_bad_import(
    fault: str, sentence: str, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ENROOT", fault)
    with pytest.raises(InfraError, match=f"enroot import {URI} failed {sentence}") as caught:
        get(images)
    assert caught.value.code == "image-import"
    assert names(images) == [f"{'ab' * 32}.lock"]
    monkeypatch.setenv("FAKE_ENROOT", "good")
    assert whole(get(images)[0])


def test_enroot_is_not_there(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(InfraError, match="cannot start enroot: No such file"):
        get(images)


def test_a_broken_file_is_replaced(images: Path) -> None:
    images.mkdir()
    broken = images / f"{'ab' * 32}.sqsh"
    broken.write_bytes(b"hsqs" + bytes(36) + (4096).to_bytes(8, "little") + bytes(2000))
    assert not whole(broken)
    assert whole(get(images)[0])
    assert len(calls(images)) == 1


def _one(images: Path) -> tuple[str, list[str]]:
    file, told = get(images)
    return str(file) if whole(file) else "", told


@pytest.mark.parametrize("jobs", [2, 8])
def test_many_at_once_import_once(jobs: int, images: Path) -> None:
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        found = pool.map(_one, [images] * jobs, chunksize=1)
    assert {file for file, _ in found} == {str(images / f"{'ab' * 32}.sqsh")}
    assert calls(images) == [URI]
    assert sum("importing the image" in told for _, told in found) == 1


def test_who_waits_goes_on_when_the_importer_is_killed(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ENROOT", "hangs")
    context = multiprocessing.get_context("fork")
    importer = context.Process(target=_one, args=(images,))
    importer.start()
    assert wait_until(lambda: list(images.glob(".*.part")), 20)
    monkeypatch.setenv("FAKE_ENROOT", "good")
    with context.Pool(1) as pool:
        waiting = pool.apply_async(_one, (images,))
        time.sleep(0.5)
        assert not waiting.ready()
        assert importer.pid
        os.kill(importer.pid, signal.SIGKILL)
        importer.join()
        file, told = waiting.get(20)
    assert file
    assert told == ["waiting for the image's import", "importing the image"]
    assert names(images) == [f"{'ab' * 32}.lock", f"{'ab' * 32}.sqsh"]


@pytest.mark.parametrize(
    ("image", "digest", "name"),
    [
        ("engine", "", "engine"),
        ("owner/engine:1", "", "owner/engine:1"),
        ("registry.example/owner/engine:1", "", "registry.example#owner/engine:1"),
        ("localhost:5000/engine", "", "localhost:5000#engine"),
        ("localhost:5000/engine", DIGEST, f"localhost:5000#engine:{DIGEST}"),
        ("registry.example#owner/engine:1", DIGEST, f"registry.example#owner/engine:{DIGEST}"),
        ("docker://owner/engine:1", "", "owner/engine:1"),
    ],
)
def test_names_as_enroot_writes_them(image: str, digest: str, name: str) -> None:
    assert reference(image, digest) == name
