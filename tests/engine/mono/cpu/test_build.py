"""Builds on disk: named by their key, written once, ready at once the second time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from infx.engine.mono.cpu.compiled import cpu_key, load
from infx.engine.mono.cpu.source import build_text
from infx.engine.mono.shape import CPU_GRAIN, Caches
from tests.engine.mono.tiny_layers import TINY, table, with_sum

WARM_LIMIT_S = 3.0
START = """
import sys
from infx.engine.mono.cpu.bind import Mono
from infx.engine.cache import KvCache
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
import time
model = mini()
weights, cache = target_weights(model, "random:7"), KvCache.empty(model, 4)
begun = time.perf_counter()
Mono(model, weights, cache)
print(time.perf_counter() - begun)
"""


def test_a_build_is_one_file_named_by_its_key(tmp_path: Path) -> None:
    keys = [
        cpu_key(TINY, "sparse", 4, Caches()),
        cpu_key(TINY, "sparse", 5, Caches()),
        cpu_key(TINY, "sparse", 4, Caches("bf16")),
        cpu_key(replace(TINY, swiglu_limit=6.0), "sparse", 4, Caches()),
        cpu_key(TINY, "sparse", 4, Caches(), tapped=True),
        cpu_key(TINY, "sparse", 4, Caches(), grain=replace(CPU_GRAIN, up_tile=4)),
    ]
    for key in keys:
        load(key, tmp_path)
        load(key, tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".py")
    assert files == sorted(f"infx_mono_{key.digest[:24]}.py" for key in keys)


def test_orders_that_the_back_end_does_not_do_are_refused() -> None:
    made = table()
    with pytest.raises(ValueError, match="sum up is dealt by"):
        _run(build_text(with_sum(made, "up", dealt_by=("expert", "chunk"))))
    with pytest.raises(ValueError, match="sum index_dot has chunks of 2"):
        _run(build_text(with_sum(made, "index_dot", chunk=2)))
    with pytest.raises(ValueError, match="sum combine has 2 lanes"):
        build_text(with_sum(made, "combine", lanes=2))


def _run(text: str) -> None:
    exec(compile(text, "build", "exec"), {})


@pytest.mark.slow
def test_a_warm_start_is_quick(tmp_path: Path) -> None:
    environment = {**os.environ, "INFX_MONO_CACHE": str(tmp_path)}
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        command = [sys.executable, "-c", START]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        seconds.append(time.perf_counter() - begun)
    cold, warm = seconds
    # The whole process, with the imports of torch and numba, must be quick.
    assert warm < cold / 2
    assert warm < 2 * WARM_LIMIT_S, seconds
