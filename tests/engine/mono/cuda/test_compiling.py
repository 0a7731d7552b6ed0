"""Builds: their text, their key, what is on disk, and what a compiler says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.engine.mono.cuda import compiling
from infx.engine.mono.cuda.source import KERNELS, BuildSource, build_source
from tests.programs import needs

NVCC = needs("nvcc")


def test_every_include_is_put_in_once() -> None:
    text = build_source("unfused.cu", {"ROWS": 2}).text
    assert "#include" not in text
    assert "#pragma once" not in text
    assert text.count("struct LayerArgs {") == 1


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing\.cu"):
        build_source("nothing.cu", {})


def test_a_key_is_of_text_and_defines() -> None:
    first = build_source("mono.cu", {"ROWS": 1, "KV_KIND": 1})
    assert first.key == build_source("mono.cu", {"KV_KIND": 1, "ROWS": 1}).key
    assert first.key != build_source("mono.cu", {"KV_KIND": 1, "ROWS": 2}).key
    assert first.key != BuildSource("mono", first.text + "\n", first.defines).key


def test_what_is_on_disk_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = BuildSource("some", "text", ())
    made: list[str] = []
    monkeypatch.setattr(compiling, "compile_cubin", lambda s: made.append(s.key) or b"code")
    assert compiling.cubin_of(source, tmp_path / "cuda") == b"code"
    assert compiling.cubin_of(source, tmp_path / "cuda") == b"code"
    assert made == [source.key]
    (kept,) = (tmp_path / "cuda").iterdir()
    assert kept.name == f"{source.key}.cubin"
    (tmp_path / "other").touch()
    assert kept.stat().st_mode == (tmp_path / "other").stat().st_mode, "others may read it"


def test_what_cannot_be_kept_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "compile_cubin", lambda _: b"code")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InfraError, match="no space left on device") as raised:
        compiling.cubin_of(BuildSource("some", "text", ()), tmp_path)
    assert raised.value.code == "builds-unwritable"
    assert not list(tmp_path.iterdir())


@NVCC
def test_builds_are_compiled_side_by_side_and_the_first_that_fails_is_named(tmp_path: Path) -> None:
    kernel = 'extern "C" __global__ void some(int* out) { *out = NUMBER; }'
    good = [BuildSource("some", kernel, (("NUMBER", n),)) for n in range(2)]
    compiling.compile_all(good, tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {source.key for source in good}
    bad = BuildSource("bad", kernel, ())
    with pytest.raises(InfraError, match=r"bad-.*NUMBER") as raised:
        compiling.compile_all([*good, bad, BuildSource("worse", kernel, ())], tmp_path)
    assert raised.value.code == "mono-build-failed"


def test_what_is_on_disk_needs_no_compiler(tmp_path: Path) -> None:
    both = [BuildSource("some", "text", (("NUMBER", n),)) for n in range(2)]
    (tmp_path / f"{both[0].key}.cubin").touch()
    assert not compiling.are_kept(both, tmp_path)
    assert compiling.are_kept(both[:1], tmp_path)


def end(*_: object) -> None:
    os._exit(9)  # as the kernel does where memory is short


def test_a_compiling_process_that_is_killed_is_an_error_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_fault_of", end)
    some = [BuildSource("some", "text", (("NUMBER", n),)) for n in range(2)]
    with pytest.raises(InfraError, match="one of 2 builds was killed") as raised:
        compiling.compile_all(some, tmp_path)
    assert raised.value.code == "mono-build-failed"


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compiling, "compile_cubin", lambda _: b"code")
    with pytest.raises(InfraError, match="INFX_MONO_CACHE"):
        compiling.cubin_of(BuildSource("some", "text", ()), tmp_path / "file" / "cuda")


def test_the_folder_is_the_one_for_compiled_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFX_MONO_CACHE", "/somewhere")
    assert compiling.cubin_folder() == Path("/somewhere/cuda")


def test_a_machine_without_a_compiler_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_has_nvrtc", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    refusal = compiling.refuse_compiler()
    assert refusal is not None
    assert (refusal.code, refusal.level) == ("mono-no-compiler", "bind")
    with pytest.raises(InfraError, match=r"some-.* is not on disk: neither cuda\.core") as raised:
        compiling.compile_cubin(BuildSource("some", "text", ()))
    assert raised.value.code == "mono-build-failed"
    (tmp_path / "nvcc").write_text("#!/bin/sh\n")
    (tmp_path / "nvcc").chmod(0o755)
    assert compiling.refuse_compiler() is None


@NVCC
def test_what_does_not_compile_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_has_nvrtc", lambda: False)
    with pytest.raises(InfraError, match=r"broken.*expected"):
        compiling.compile_cubin(BuildSource("broken", "int f( {", ()))


def test_kernel_files_travel_with_the_package() -> None:
    assert {path.suffix for path in KERNELS.iterdir()} == {".cu", ".cuh"}
    assert os.access(KERNELS / "args.cuh", os.R_OK)
