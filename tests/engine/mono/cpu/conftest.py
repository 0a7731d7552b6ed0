"""The builds of mini, compiled once for all tests of this folder."""

from __future__ import annotations

import sys

import pytest

from infx.engine.mono.cpu.compiled import cpu_key, load
from infx.engine.mono.cpu.compiling import compile_builds
from infx.engine.mono.cpu.kinds import layer_shape
from infx.engine.mono.shape import KINDS, MOST_ROWS, Caches
from infx.engine.shapes import mini


@pytest.fixture(scope="session")
def mini_builds() -> None:
    """Have mini's layers compiled, those of mini_3_1 included."""
    shape = layer_shape(mini())
    keys = [cpu_key(shape, kind, MOST_ROWS, Caches()) for kind in KINDS]
    compile_builds([load(key) for key in keys], sys.stderr)
