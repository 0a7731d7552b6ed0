"""Builds on disk: named by their key, written once, ready at once the second time."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import infx
from infx.domain.errors import InfraError
from infx.engine.mono.cpu import compiled, inner, rows, vector
from infx.engine.mono.cpu.compiled import cpu_key, load
from infx.engine.mono.cpu.pointers import ARGUMENTS
from infx.engine.mono.cpu.source import build_text
from infx.engine.mono.shape import CPU_GRAIN, Caches
from infx.engine.mono.sums import Sum
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
ONE_LANE = replace(FINE, lanes=1, down_lanes=1, merge_group=512)


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


def test_a_key_digests_every_file_of_ours_that_is_compiled(tmp_path: Path) -> None:
    build = load(cpu_key(TINY, "sparse", 4, Caches()), tmp_path)
    paths = {f"infx.{name}": Path(str(file)) for name, file in _ours().items()}
    reached: set[str] = set()
    waiting = [build.path.read_text()]
    while waiting:
        found = {
            node.module
            for node in ast.walk(ast.parse(waiting.pop()))
            if isinstance(node, ast.ImportFrom) and node.module in paths
        }
        waiting += [paths[name].read_text() for name in found - reached]
        reached |= found
    assert reached == {source.__name__ for source in compiled.SOURCES}


def _ours() -> dict[str, Path]:
    root = Path(infx.__file__).parent
    files = root.rglob("*.py")
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in files}


def test_functions_that_two_builds_share_are_made_for_each() -> None:
    made = []
    for build in ("one", "other"):
        inner.owned_by(build)
        product = vector.product_of(Sum("up", 8), 24).py_func
        some = inspect.getclosurevars(product).nonlocals["some"].py_func
        dots = vector.dots_of(Sum("index_dot", 8, lanes=8, merged_by="halving")).py_func
        made.append([function.__qualname__ for function in (product, some, dots)])
    assert all(name.startswith("one.") for name in made[0])
    assert all(name.startswith("other.") for name in made[1])


def test_streams_come_first_in_a_call() -> None:
    assert ARGUMENTS[rows.STREAM_IN] == "stream_in"
    assert ARGUMENTS[rows.STREAM_OUT] == "stream_out"


@pytest.mark.parametrize("damage", ["", "run = None\n", "def run(:\n"])
def test_a_damaged_build_is_written_again(damage: str, tmp_path: Path) -> None:
    key = cpu_key(TINY, "dense", 4, Caches())
    path, name = load(key, tmp_path).path, f"infx_mono_{key.digest[:24]}"
    text = path.read_text()
    path.write_text(damage)
    del sys.modules[name]
    assert load(key, tmp_path).path.read_text() == text
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == [path.name]


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = cpu_key(TINY, "dense", 4, Caches())
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InfraError, match="INFX_MONO_CACHE") as raised:
        load(key, file / "below")
    assert raised.value.code == "builds-unwritable"
    assert str(file / "below") in str(raised.value)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("INFX_MONO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InfraError, match=r"home directory\.: name a folder"):
        load(key)


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
