"""A bundle's name is its content; wheels are made once, and whole."""

from __future__ import annotations

import io
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import infx
from infx.domain.errors import InfraError, UsageError
from infx.launch.prepare import wheels
from infx.launch.prepare.bundle import bundle_id, constraints, kept, make_bundle
from infx.launch.prepare.own_wheel import write_wheel
from infx.launch.prepare.wheels import Needed, Target, build
from tests.launch.prepare.tiny_wheel import write_tiny

HERE = Target(f"{sys.version_info[0]}.{sys.version_info[1]}", "manylinux_2_28_x86_64")
LOCK = "typer==0.28.0\n"


def test_a_wheel_built_again_has_the_same_digest(tmp_path: Path) -> None:
    first = write_tiny(tmp_path / "a", source="x = 1\n")
    again = write_tiny(tmp_path / "b", source="x = 1\n", date=2026, deflate=True, note="other")
    assert first.path.read_bytes() != again.path.read_bytes()
    assert first.digest == again.digest


def test_one_changed_source_changes_the_digest(tmp_path: Path) -> None:
    first = write_tiny(tmp_path / "a", source="x = 1\n")
    assert first.digest != write_tiny(tmp_path / "b", source="x = 2\n").digest


def test_a_wheel_says_its_version_and_extras_and_nothing_of_its_readme(tmp_path: Path) -> None:
    tiny = write_tiny(tmp_path)
    assert (tiny.version, tiny.extras, tiny.requirements) == ("0.0.1", ("bench",), ())


TARGETS = st.builds(Target, st.sampled_from(["3.11", "3.12"]), st.sampled_from(["p_1_x", "p_2_x"]))
PARTS = st.tuples(st.text(max_size=3), st.frozensets(st.sampled_from("abc")), TARGETS)


@given(PARTS, PARTS, st.sampled_from("df"), st.sampled_from("df"))
def test_ids_are_equal_exactly_when_the_parts_are(one, two, digest, other) -> None:
    ids = [bundle_id(lock, tuple(extras), d, target) for (lock, extras, target), d in
           ((one, digest), (two, other))]  # fmt: skip
    assert (ids[0] == ids[1]) == ((one, digest) == (two, other))


def test_extras_are_a_set() -> None:
    assert bundle_id(LOCK, ["a", "b"], "d", HERE) == bundle_id(LOCK, ["b", "a", "b"], "d", HERE)


def test_tags_run_from_the_newest_glibc_to_the_oldest() -> None:
    tags = Target("3.11", "manylinux_2_17_aarch64").tags()
    assert tags[0] == "manylinux_2_17_aarch64"
    assert "manylinux_2_5_aarch64" in tags
    assert "manylinux2014_aarch64" in tags
    assert "manylinux_2_28_aarch64" not in tags


def test_an_extra_that_infx_lacks_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    own = kept(write_tiny(tmp_path / "w"), tmp_path)
    with pytest.raises(UsageError, match=r"benhc.*did you mean.*bench"):
        make_bundle(own, ["benhc"], HERE, tmp_path, print)


def test_without_pip_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda name: None)
    with pytest.raises(InfraError, match=r"no pip.*ensurepip") as caught:
        wheels.pip(["--version"], 10, "x")
    assert caught.value.code == "bundle-failed"


def test_pip_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfraError, match="did not end in 0 s"):
        wheels.pip(["--version"], 0.01, "x")


def test_pip_has_the_last_word_on_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    none = Needed("infx-has-no-such-dependency", "1.0", False)
    with pytest.raises(InfraError, match=r"infx-has-no-such-dependency==1\.0") as caught:
        wheels.pip(["download", "--no-index", none.pin, "-d", str(tmp_path)], 60, none.pin)
    assert "constraints.txt" in caught.value.hint


def test_the_lock_file_is_found() -> None:
    assert "aiperf==" in constraints().read_text()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache") / "bundles"


@pytest.mark.slow
def test_infx_packed_again_from_its_installed_files_is_the_same_infx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = write_wheel(tmp_path / "built")
    site = tmp_path / "site"
    wheels.pip(
        ["install", "--no-deps", "--no-index", "--target", str(site), str(built.path)], 60, "infx"
    )
    monkeypatch.setattr(infx, "__file__", str(site / "infx/__init__.py"))
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    packed = write_wheel(tmp_path / "packed")
    assert packed.path.read_bytes() != built.path.read_bytes()
    assert replace(packed, path=built.path) == built


@pytest.mark.slow
def test_a_bundle_is_made_once(cache: Path, tmp_path: Path) -> None:
    own = kept(write_tiny(tmp_path), cache)
    told: list[str] = []
    made = make_bundle(own, [], HERE, cache, told.append)
    assert [file.name.split("-")[0] for file in made.files] == ["infx", "pip"]
    assert all((cache / file.path).stat().st_size == file.bytes for file in made.files)
    assert len(told) == 2
    assert make_bundle(own, [], HERE, cache, told.append) == made
    edited = make_bundle(replace(own, digest="another"), [], HERE, cache, told.append)
    assert edited.id != made.id
    assert len(told) == 2, "an edit of infx fetched its dependencies again"
    (cache / made.files[1].path).write_bytes(b"cut")
    assert make_bundle(own, [], HERE, cache, told.append) == made
    assert len(told) == 4, "a damaged wheel was not fetched again"
    assert (cache / made.files[1].path).stat().st_size == made.files[1].bytes
    assert not list(cache.glob(".making-*"))


BACKEND = """
import zipfile
def build_wheel(folder, settings=None, metadata=None):
    with zipfile.ZipFile(f"{folder}/NAME-1.0-py3-TAG.whl", "w") as wheel:
        wheel.writestr("NAME-1.0.dist-info/METADATA",
                       "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n")
        wheel.writestr("NAME-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-TAG\\n")
        wheel.writestr("NAME-1.0.dist-info/RECORD", "")
    return "NAME-1.0-py3-TAG.whl"
"""


def source(folder: Path, tag: str) -> Needed:
    """An sdist with a build backend of its own, which makes a wheel of that ``tag``."""
    name = f"infx_test_{tag.replace('-', '_')}"
    files = {
        "pyproject.toml": "[build-system]\nrequires = []\n"
        'build-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND.replace("NAME", name).replace("TAG", tag),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return Needed(name, "1.0", True)


@pytest.mark.slow
def test_a_source_is_built_when_it_is_pure_and_refused_when_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    pure, compiled = (source(tmp_path, tag) for tag in ("none-any", "cp311-linux_x86_64"))
    made = tmp_path / "wheels"
    made.mkdir()
    build([pure], made)
    assert [path.name for path in made.iterdir()] == ["infx_test_none_any-1.0-py3-none-any.whl"]
    with pytest.raises(InfraError, match=r"infx_test_cp311.*fits this machine"):
        build([compiled], made)
