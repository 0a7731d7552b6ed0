"""Builds on disk: named by their key, written once, ready at once the second time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from infx.engine.mono.cpu import compiled
from infx.engine.mono.cpu.compiled import cpu_key, load
from infx.engine.mono.cpu.source import build_text
from infx.engine.mono.shape import CPU_GRAIN, Caches
from tests.engine.mono.tiny_layers import FINE, TINY, table, with_sum

WARM_LIMIT_S = 3.0
START = """
import resource, sys
from infx.engine.cache import KvCache
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
model = mini()
weights, cache = target_weights(model, "random:7"), KvCache.empty(model, 4)
def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
begun = spent()
from infx.engine.mono.cpu.back_end import CpuBackEnd, packed_layers
back_end = CpuBackEnd(model, packed_layers(model, weights), cache)
assert back_end.refuse() is None and back_end.build(16) is None
print(spent() - begun)
"""
ONE_LANE = replace(FINE, lanes=1, down_lanes=1)


def test_a_build_is_one_file_named_by_its_key(tmp_path: Path) -> None:
    keys = [
        cpu_key(TINY, "sparse", 4, Caches()),
        cpu_key(TINY, "sparse", 5, Caches()),
        cpu_key(TINY, "sparse", 4, Caches("bf16")),
        cpu_key(replace(TINY, swiglu_limit=6.0), "sparse", 4, Caches()),
        cpu_key(TINY, "sparse", 4, Caches(), replace(CPU_GRAIN, score_tile=4)),
    ]
    for key in keys:
        load(key, tmp_path)
        load(key, tmp_path)
    files = sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".py")
    assert files == sorted(f"infx_mono_{key.digest[:24]}.py" for key in keys)


def test_a_key_names_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cpu_key(TINY, "sparse", 4, Caches())
    assert cpu_key(TINY, "sparse", 4, Caches()) == key
    monkeypatch.setattr(compiled, "build_text", lambda table: build_text(table) + "# changed\n")
    assert cpu_key(TINY, "sparse", 4, Caches()).digest != key.digest


def test_a_build_has_its_stages_and_a_shorter_way_through_them(tmp_path: Path) -> None:
    build = load(cpu_key(TINY, "sparse", 4, Caches()), tmp_path)
    # Mono does up and down as one: 9 calls' work in one call, where the others are 10.
    assert build.mono == (0, 9)
    assert [first for first, _ in build.unfused] == [*range(8), 9, 10]
    dense = load(cpu_key(TINY, "dense", 4, Caches()), tmp_path)
    assert dense.mono == (0, len(dense.table.stages))
    assert len(dense.unfused) == len(dense.table.stages)


def test_orders_that_the_back_end_does_not_do_are_refused() -> None:
    made = table(grain=ONE_LANE)
    with pytest.raises(ValueError, match="sum up is dealt by"):
        _run(build_text(with_sum(made, "up", dealt_by=("expert", "chunk"))))
    with pytest.raises(ValueError, match=r"sum up is dealt by \('chunk',\) to 3 lanes"):
        _run(build_text(with_sum(made, "up", lanes=3)))
    with pytest.raises(ValueError, match="sum index_dot has chunks of 2"):
        _run(build_text(with_sum(made, "index_dot", chunk=2)))
    with pytest.raises(ValueError, match="sum combine has 2 lanes"):
        build_text(with_sum(made, "combine", lanes=2))
    with pytest.raises(ValueError, match="no stage merge"):
        build_text(table(width=1, grain=ONE_LANE))


def _run(text: str) -> None:
    exec(compile(text, "build", "exec"), {})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_warm_start_is_quick(mini_builds: None) -> None:
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, env=os.environ, check=True, capture_output=True, text=True)
    # Processor time, imports of numba included: the machine may be busy.
    assert float(done.stdout) < WARM_LIMIT_S
    assert not done.stderr
