"""Builds on disk: one file a key, compiled once, and what numba made of it beside it."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
from numba.core.registry import cpu_target

from infx.engine.mono.build import FRAMEWORK, BuildKey, source_digest
from infx.engine.mono.cpu.source import LAYER_ARGUMENTS, build_text
from infx.engine.mono.shape import CPU_GRAIN, Caches, Formats, Grain, Kind, LayerShape, Machine, cpu
from infx.engine.mono.table import Table

__all__ = ["Build", "cache_folder", "cpu_key", "load"]

NAME_DIGITS = 24  # of the digest: enough that no two builds of a machine meet


@dataclass(frozen=True, slots=True)
class Build:
    """Compiled stages of a table. ``module`` has a function a stage and ``layer``."""

    key: BuildKey
    table: Table
    module: ModuleType

    def stages(self) -> list[tuple[Any, tuple[int, ...]]]:
        """Return each stage's function, in order, and which of `LAYER_ARGUMENTS` it takes."""
        found = []
        for stage in self.table.stages:
            function = getattr(self.module, stage.name)
            code = function.py_func.__code__
            names = code.co_varnames[: code.co_argcount]
            found.append((function, tuple(map(LAYER_ARGUMENTS.index, names))))
        return found


def cache_folder() -> Path:
    """Return where builds are kept: INFX_MONO_CACHE, or infx/mono in the user's cache."""
    given = os.environ.get("INFX_MONO_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "infx" / "mono"


def cpu_key(
    shape: LayerShape,
    kind: Kind,
    width: int,
    caches: Caches,
    tapped: bool = False,
    grain: Grain = CPU_GRAIN,
    machine: Machine | None = None,
) -> BuildKey:
    """Return the key of a build for this machine's processor, one thread."""
    # Triple, processor and features: what numba itself asks before it takes code from disk.
    target = cpu_target.target_context.codegen().magic_tuple()
    return BuildKey(
        back_end="numba",
        target=" ".join(target),
        compiler=f"numba {numba.__version__}",
        sources=source_digest([FRAMEWORK]),
        shape=shape,
        kind=kind,
        width=width,
        machine=machine or cpu(1),
        grain=grain,
        caches=caches,
        formats=Formats(),
        tapped=tapped,
        debug=False,
    )


def load(key: BuildKey, folder: Path | None = None) -> Build:
    """Return the build of ``key`` from ``folder``, written there if it is not; compiles nothing.

    Raises ValueError for a table that this back end does not do.
    """
    name = f"infx_mono_{key.digest[:NAME_DIGITS]}"
    table = key.table()
    path = (folder or cache_folder()) / f"{name}.py"
    if name not in sys.modules or sys.modules[name].__file__ != str(path):
        if not path.exists():
            _write(path, build_text(table))
        sys.modules[name] = _imported(name, path)
    return Build(key, table, sys.modules[name])


def _write(path: Path, text: str) -> None:
    """Write ``path`` whole or not at all: ranks of one machine may build at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8"
    ) as file:
        file.write(text)
    # The first one stays: numba's cache knows the file by its time.
    try:
        os.link(file.name, path)
    except FileExistsError:
        pass
    finally:
        Path(file.name).unlink()


def _imported(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
