"""Builds on disk: one file a key, compiled once, and what numba made of it beside it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numba
from numba.core.registry import cpu_target

from infx.domain.errors import InfraError
from infx.engine.kept import cache_folder
from infx.engine.mono import sums
from infx.engine.mono.build import BuildKey
from infx.engine.mono.cpu import bits, codecs, inner, pointers, vector
from infx.engine.mono.cpu.source import FUSED, build_text, stage_names
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import CPU_GRAIN, Caches, Formats, Grain, Kind, LayerShape, cpu
from infx.engine.mono.table import Table

__all__ = ["Build", "cpu_key", "imported", "load", "writing"]

NAME_DIGITS = 24  # of the digest: enough that no two builds of a machine meet
# What a build's own text does not hold of what is compiled.
SOURCES = (bits, codecs, inner, pointers, sums, vector)


# f(call, first, end): `infx.engine.mono.cpu.source.build_text`.
Run = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Build:
    """A compiled table. ``mono`` and each of ``unfused`` are (first, end) of ``run``."""

    key: BuildKey
    table: Table
    path: Path
    run: Run
    mono: tuple[int, int]
    unfused: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, key: BuildKey, table: Table, path: Path) -> Build:
        """Return the build whose file is ``path``."""
        names = stage_names(table)
        mono = names.index(FUSED) + 1 if FUSED in names else len(names)
        order = [names.index(stage.name) for stage in table.stages]
        run = imported(path).run
        return cls(key, table, path, run, (0, mono), tuple((n, n + 1) for n in order))


def cpu_key(
    shape: LayerShape, kind: Kind, width: int, caches: Caches, grain: Grain = CPU_GRAIN
) -> BuildKey:
    """Return the key of a build for this machine's processor, one thread.

    Its sources are the build's own text and what that imports: other files of the framework can
    change without another compilation. Raises ValueError for what this back end does not do.
    """
    # Triple, processor and features: what numba itself asks before it takes code from disk.
    target = cpu_target.target_context.codegen().magic_tuple()
    text = build_text(make_table(shape, kind, width, cpu(1), grain, caches))
    return BuildKey(
        back_end="numba",
        target=" ".join(target),
        compiler=f"numba {numba.__version__}",
        sources=_digest(text, *(Path(str(source.__file__)).read_text() for source in SOURCES)),
        shape=shape,
        kind=kind,
        width=width,
        machine=cpu(1),
        grain=grain,
        caches=caches,
        formats=Formats(),
        tapped=False,
        debug=False,
    )


def load(key: BuildKey, folder: Path | None = None) -> Build:
    """Return the build of ``key`` from ``folder``, written there if it is not; compiles nothing.

    Raises InfraError (``builds-unwritable``).
    """
    table = key.table()
    path = (folder or cache_folder()) / f"infx_mono_{key.digest[:NAME_DIGITS]}.py"
    with writing(path.parent):
        _keep(path, build_text(table))
    return Build.of(key, table, path)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise InfraError (``builds-unwritable``) for an OSError inside."""
    try:
        yield
    except OSError as error:
        raise InfraError(
            "builds-unwritable",
            f"{folder}: compiled layers cannot be kept there: {error}; name a folder with room for"
            " them in INFX_MONO_CACHE, or serve by --layers reference",
        ) from error


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _keep(path: Path, text: str) -> None:
    """Have ``path`` hold ``text``: what was damaged or changed since is written again."""
    if path.exists():
        if path.read_bytes() == text.encode():
            return
        path.unlink(missing_ok=True)
    _write(path, text)


def _write(path: Path, text: str) -> None:
    """Write ``path`` whole or not at all: ranks of one machine may build at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as own:
        part = Path(own, path.name)
        part.write_text(text, encoding="utf-8")
        # The first one stays: numba's cache knows the file by its time.
        with suppress(FileExistsError):
            os.link(part, path)


def imported(path: Path) -> ModuleType:
    """Return the module of a build's file, the same one each time."""
    name = path.stem
    if name not in sys.modules or sys.modules[name].__file__ != str(path):
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be loaded as a module")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]
