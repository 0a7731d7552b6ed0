"""What is truncated, foreign or malformed is refused; what is written is read back."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.errors import ConfigError
from infx.domain.serial import decode, encode
from infx.review.bundle import Bundle, Manifest
from infx.review.reading import MANIFEST, PARTS, bundle_of, read_bundle, sealed
from infx.review.writing import bundle_files
from tests.review.minimax_m3 import ARTIFACTS, RUN, minimax_m3, write


def codes(path: Path) -> set[str]:
    with pytest.raises(ConfigError) as caught:
        read_bundle(path)
    assert caught.value.exit_code == 2
    return {finding.code for finding in caught.value.findings}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(minimax_m3(), tmp_path_factory.mktemp("bundles") / "m3")


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def resealed(manifest: dict[str, Any]) -> bytes:
    """A manifest as another program could write it, with a seal that fits."""
    return encode(sealed(decode(json.dumps(manifest), Manifest)))


def same(found: Bundle) -> bool:
    return replace(found, manifest=minimax_m3().manifest) == minimax_m3()


def test_a_folder_is_read_back(whole: Path) -> None:
    assert same(read_bundle(whole))


@pytest.mark.parametrize("inner", ["", "m3/"])
def test_archives_are_read_back(whole: Path, tmp_path: Path, inner: str) -> None:
    files = [path for path in whole.rglob("*") if path.is_file()]
    with zipfile.ZipFile(tmp_path / "m3.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, inner + str(path.relative_to(whole)))
    with tarfile.open(tmp_path / "m3.tar.gz", "w:gz") as tar:
        tar.add(whole, arcname=inner or ".")
    assert same(read_bundle(tmp_path / "m3.zip"))
    assert same(read_bundle(tmp_path / "m3.tar.gz"))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["m3.zip", "m3.tar.gz"])
def test_a_truncated_archive_is_refused(
    whole: Path, tmp_path: Path, name: str, share: float
) -> None:
    kind = "zip" if name.endswith("zip") else "gztar"
    made = Path(shutil.make_archive(str(tmp_path / "m3"), kind, whole))
    data = made.read_bytes()
    made.write_bytes(data[: int(share * len(data))])
    assert codes(made) == {"bad-bundle"}


def test_nothing_there(tmp_path: Path) -> None:
    assert codes(tmp_path / "none") == {"file-not-found"}
    assert codes(tmp_path) == {"bad-bundle"}


@pytest.mark.parametrize("part", [*PARTS, "diff.patch", "CODEOWNERS"])
def test_each_part_must_be_there_and_as_listed(folder: Path, part: str) -> None:
    data = (folder / part).read_bytes()
    (folder / part).write_bytes(data[: len(data) // 2])
    assert codes(folder) == {"bad-bundle"}
    (folder / part).unlink()
    assert codes(folder) == {"bad-bundle"}


def test_a_part_that_is_not_listed_is_refused(folder: Path) -> None:
    listed = json.loads((folder / MANIFEST).read_text())
    del listed["files"]["runs.json"]
    (folder / MANIFEST).write_bytes(resealed(listed))
    with pytest.raises(ConfigError, match=r"runs\.json is not listed"):
        read_bundle(folder)


def test_a_missing_artifact_is_refused(folder: Path) -> None:
    files = dict(bundle_files(minimax_m3(), {}))
    with pytest.raises(ConfigError, match=r"tp4-c1/srt-single-node-submission.json"):
        bundle_of(files, "b")
    shutil.rmtree(folder / "artifacts")
    assert codes(folder) == {"bad-bundle"}


def rewritten(**changes: object) -> dict[str, bytes]:
    return dict(bundle_files(replace(minimax_m3(), **changes), ARTIFACTS))  # type: ignore[arg-type]


def refused(files: dict[str, bytes]) -> set[str]:
    with pytest.raises(ConfigError) as caught:
        bundle_of(files, "b")
    return {finding.code for finding in caught.value.findings}


@pytest.mark.parametrize("change", [{"repository": "other/repo"}, {"pull_request": 12}])
def test_a_foreign_run_is_refused(change: dict[str, object]) -> None:
    (run,) = minimax_m3().runs
    assert refused(rewritten(runs=(replace(run, **change),))) == {"foreign-run"}  # type: ignore[arg-type]


def test_records_of_a_run_that_is_not_there_are_refused() -> None:
    assert "foreign-run" in refused(rewritten(runs=()))


def test_a_pull_request_of_another_repository_is_refused() -> None:
    request = replace(minimax_m3().pull_request, repository="other/repo")
    assert refused(rewritten(pull_request=request)) == {"foreign-run"}


def test_the_head_is_the_last_commit() -> None:
    manifest = replace(minimax_m3().manifest, head="f" * 40)
    assert refused(rewritten(manifest=manifest)) == {"bad-bundle"}


@pytest.mark.parametrize("text", ["", "[]", '{"number": "three"}', "null", "\u0000"])
def test_a_part_of_another_shape_is_refused(text: str) -> None:
    files = rewritten()
    files["pull-request.json"] = text.encode()
    listed = json.loads(files[MANIFEST])
    listed["files"]["pull-request.json"] = hashlib.sha256(text.encode()).hexdigest()
    files[MANIFEST] = resealed(listed)
    assert refused(files) == {"bad-record"}


@pytest.mark.parametrize("kind", ["zip", "gztar", "xztar"])
def test_a_damaged_archive_is_refused_or_the_same(whole: Path, tmp_path: Path, kind: str) -> None:
    made = Path(shutil.make_archive(str(tmp_path / "m3"), kind, whole))
    data, dice, refused = made.read_bytes(), random.Random(7), 0
    for _ in range(25):
        broken = bytearray(data)
        for _ in range(3):
            broken[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        made.write_bytes(broken)
        try:
            assert same(read_bundle(made))
        except ConfigError as error:
            refused += error.exit_code == 2
    assert refused > 10


@given(st.binary(max_size=200))
def test_any_manifest_is_read_or_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        bundle_of({MANIFEST: data}, "b")


def test_the_artifacts_of_the_case_are_named(whole: Path) -> None:
    assert read_bundle(whole).artifacts == (f"{RUN}/tp4-c1/srt-single-node-submission.json",)
