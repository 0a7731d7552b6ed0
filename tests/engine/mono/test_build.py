"""Equal keys are equal builds; any value that differs makes another key."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.mono.build import FRAMEWORK, BuildKey, constants, source_digest
from infx.engine.mono.shape import (
    CPU_GRAIN,
    GPU_GRAIN,
    H200,
    KINDS,
    MOST_ROWS,
    SHAPES,
    Caches,
    Formats,
    cpu,
)
from tests.engine.mono.tiny_layers import FINE, MACHINE, TINY


def key(**changes: Any) -> BuildKey:
    """Return a key made of new objects."""
    given: dict[str, Any] = {
        "back_end": "numba",
        "target": "x86_64",
        "compiler": "0.68",
        "sources": "ab" * 32,
        "shape": dataclasses.replace(TINY),
        "kind": "sparse",
        "width": 4,
        "machine": dataclasses.replace(MACHINE),
        "grain": dataclasses.replace(FINE),
        "caches": Caches("fp32", "fp32"),
        "formats": Formats("fp32", "fp32", "fp32"),
        "tapped": False,
        "debug": False,
    }
    return BuildKey(**given | changes)


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every plain value of a dataclass."""
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if dataclasses.is_dataclass(inner):
            yield from leaves(inner, (*path, field.name))
        else:
            yield (*path, field.name)


def other(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + "x" if isinstance(value, str) else value + 1


def changed(value: Any, path: tuple[str, ...]) -> Any:
    inner = getattr(value, path[0])
    new = changed(inner, path[1:]) if path[1:] else other(inner)
    return dataclasses.replace(value, **{path[0]: new})


LEAVES = list(leaves(key()))


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_each_value_changes_the_key(path: tuple[str, ...]) -> None:
    assert changed(key(), path).digest != key().digest


def test_all_values_are_seen() -> None:
    assert len(LEAVES) > 50
    assert ("shape", "norm_eps") in LEAVES
    assert ("grain", "lanes") in LEAVES


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    width=st.integers(1, MOST_ROWS),
    kv=st.sampled_from(("fp32", "bf16", "fp8", "mxfp4")),
    tapped=st.booleans(),
)
def test_equal_keys_are_equal_builds(kind: str, width: int, kv: str, tapped: bool) -> None:
    one, two = (key(kind=kind, width=width, caches=Caches(kv), tapped=tapped) for _ in range(2))
    assert one == two
    assert one.digest == two.digest
    assert one.table() == two.table()
    assert constants(one.table()) == constants(two.table())


def test_no_text_is_that_of_two_keys() -> None:
    texts = {key(width=1, back_end='a","b').text, key(width=1, back_end="a", target='b"').text}
    assert len(texts) == 2


def test_constants_hold_what_a_kernel_needs() -> None:
    made = key(shape=SHAPES["m3_tp4_rank"], machine=H200, grain=GPU_GRAIN, width=16).table()
    baked = constants(made)
    assert (baked["QKV_TASKS"], baked["QKV_TILE"], baked["QKV_PART"]) == (640, 160, 4)
    assert (baked["HEAD_WAIT_QKV"], baked["DOWN_WAIT_UP"], baked["ROUTER_WAIT_O"]) == (32, 132, 48)
    assert baked["HEAD_COUNTER"] == made.stage("qkv").counters == 20
    assert baked["MID_OFFSET"] % 256 == 0
    assert baked["SUM_DOWN_LANES"] == 4
    assert baked["COUNTERS"] == sum(stage.counters for stage in made.stages)


def test_another_machine_makes_other_constants() -> None:
    one = key(shape=SHAPES["mini"], machine=cpu(1), grain=CPU_GRAIN)
    two = key(shape=SHAPES["mini"], machine=cpu(2), grain=CPU_GRAIN)
    assert constants(one.table())["DOWN_WAIT_UP"] == 1
    assert constants(two.table())["DOWN_WAIT_UP"] == 2


def test_the_digest_follows_every_byte_and_name(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, text in files.items():
            (folder / f"{name}.cu").write_text(text)
        return source_digest([folder])

    digests = [digest(a="x"), digest(a="y"), digest(b="x"), digest(a="x", b=""), digest(a="xb")]
    assert len(set(digests)) == len(digests)
    assert digest(a="x") == digests[0]


def test_a_folder_without_sources_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no source"):
        source_digest([tmp_path])


def test_the_framework_has_a_digest() -> None:
    assert len(source_digest([FRAMEWORK])) == 64
