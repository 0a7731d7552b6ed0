"""Cubins of builds: from disk, or compiled by NVRTC (`cuda.core`), or by nvcc where that is all.

Nothing here is imported by a process that does not serve on a GPU, and no GPU is needed to compile.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from infx.domain.errors import InfraError
from infx.engine.kept import cache_folder
from infx.engine.mono.cuda.source import ARCHITECTURE, BuildSource
from infx.engine.mono.refusal import Refusal

__all__ = [
    "are_kept",
    "compile_all",
    "compile_cubin",
    "cubin_folder",
    "cubin_of",
    "refuse_compiler",
]


def cubin_folder() -> Path:
    """Return where cubins are kept, beside other builds (`cache_folder`)."""
    return cache_folder() / "cuda"


def refuse_compiler() -> Refusal | None:
    """Return why nothing could be compiled here, or None."""
    if _has_nvrtc() or shutil.which("nvcc"):
        return None
    return Refusal(
        "mono-no-compiler",
        "neither cuda.core (NVRTC) nor nvcc is installed: install cuda-core, or set mono: off",
    )


def are_kept(sources: Iterable[BuildSource], folder: Path | None = None) -> bool:
    """Return whether all of ``sources`` are on disk, so that nobody compiles them."""
    return all(_kept_at(source, folder).exists() for source in sources)


def cubin_of(source: BuildSource, folder: Path | None = None) -> bytes:
    """Return the machine code of ``source``; compile it once a machine.

    Raises InfraError: ``builds-unwritable``, or ``mono-build-failed`` with the compiler's words.
    """
    path = _kept_at(source, folder)
    if path.exists():
        return path.read_bytes()
    code = compile_cubin(source)
    _keep(path, code)
    return code


def compile_all(sources: Iterable[BuildSource], folder: Path | None = None) -> None:
    """Compile what of ``sources`` is not on disk, a process a core. Raises as `cubin_of`."""
    missing = [source for source in sources if not _kept_at(source, folder).exists()]
    if len(missing) < 2:
        for source in missing:
            cubin_of(source, folder)
        return
    # Spawned: a process that holds a device must not be forked.
    try:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
            for fault in processes.map(_fault_of, missing, itertools.repeat(folder)):
                if fault:
                    raise InfraError(*fault)
    except BrokenProcessPool as error:
        raise InfraError(
            "mono-build-failed",
            f"a process that compiled one of {len(missing)} builds was killed:"
            " see that memory is free, and start again",
        ) from error


def _fault_of(source: BuildSource, folder: Path | None) -> tuple[str, str] | None:
    """Compile in a process of its own; return code and words of an error: it cannot travel."""
    try:
        cubin_of(source, folder)
    except InfraError as error:
        return error.code, error.message
    return None


def compile_cubin(source: BuildSource) -> bytes:
    """Return the machine code of ``source``, compiled now.

    Raises InfraError (``mono-build-failed``).
    """
    if refusal := refuse_compiler():
        raise InfraError("mono-build-failed", f"{source.key} is not on disk: {refusal.sentence}")
    return _by_nvrtc(source) if _has_nvrtc() else _by_nvcc(source)


def _kept_at(source: BuildSource, folder: Path | None) -> Path:
    return (folder or cubin_folder()) / f"{source.key}.cubin"


def _has_nvrtc() -> bool:
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:
        return False


def _by_nvrtc(source: BuildSource) -> bytes:
    core = importlib.import_module("cuda.core")
    options = core.ProgramOptions(
        std="c++17", arch=ARCHITECTURE, define_macro=[(n, str(v)) for n, v in source.defines]
    )
    try:
        program = core.Program(source.text, code_type="c++", options=options)
        return bytes(program.compile("cubin").code)
    # Not narrower: its errors (CUDAError, NVRTCError) are exceptions of no other class and stand in
    # a private module; a missing library is a RuntimeError. Each is a build that failed.
    except Exception as error:
        raise InfraError("mono-build-failed", f"{source.key}: {error}") from error


def _by_nvcc(source: BuildSource) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        text, cubin = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        text.write_text(source.text, encoding="utf-8")
        command = ["nvcc", f"-arch={ARCHITECTURE}", "-cubin", "-std=c++17", *source.options]
        done = subprocess.run(
            [*command, "-o", str(cubin), str(text)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InfraError("mono-build-failed", f"{source.key}: {done.stderr.strip()}")
        return cubin.read_bytes()


def _keep(path: Path, code: bytes) -> None:
    """Write ``code`` whole or not at all, for whoever shares the folder."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(code)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise InfraError(
            "builds-unwritable", f"{error}: name a folder for compiled layers in INFX_MONO_CACHE"
        ) from error
