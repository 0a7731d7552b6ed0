"""Attention over all keys, compiled for the CPU, against torch at true shapes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from infx.engine.mono.cuda.judge import faults
from infx.engine.mono.cuda.judge_attention import judge_attention
from infx.engine.mono.cuda.random_layer import Layer, copied
from infx.engine.mono.cuda.random_step import Step, picked
from infx.engine.mono.cuda.setting import KINDS, Asked
from infx.engine.mono.shape import KINDS as LAYER_KINDS
from tests.engine.mono.cuda.attention_worlds import attention_world, with_sums
from tests.engine.mono.cuda.emulated import Emulated
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]
BLOCKS = 132


@functools.cache
def build(rows: int, kv: str, blocks: int) -> Emulated:
    """Return a build, made once a run of the tests."""
    numbers = {"ROWS": rows, "KV_KIND": KINDS.index(kv), "BLOCKS": blocks}
    numbers["LAYER_KIND"] = LAYER_KINDS.index("dense")
    folder = Path(tempfile.mkdtemp()) / "build"
    return Emulated(folder, {"full.cu": ("unfused_full",)}, numbers)


def world(requests: Sequence[Asked], rows: int, kv: str, seed: int) -> tuple[Layer, Step]:
    torch.set_num_threads(1)
    return attention_world(requests, rows, kv, "fp8", seed, "dense")


def run(layer: Layer, step: Step, blocks: int = BLOCKS) -> Layer:
    """Run the stage; return the layer with the caches that it leaves."""
    after = copied(layer)
    kernels = build(step.rows, layer.keys.kind, blocks)
    kernels.launch("unfused_full", range(blocks), after.fields | step.tensors)
    assert not step.tensors["merge_counts"].any()  # ready for the next launch
    return after


@pytest.mark.parametrize(
    ("kv", "rows", "requests"),
    [
        # Pads, verify rows, tokens of the step on both sides of a partition's edge.
        ("fp8", 4, (Asked(0), Asked(2300, 2))),
        ("fp8", 4, (Asked(254, 4),)),
        ("mxfp4", 4, (Asked(254, 3),)),
        ("bf16", 4, (Asked(127, 2), Asked(4095))),
        # A group of partitions that is full, and a second one; more new tokens than turns of warps.
        ("mxfp4", 4, (Asked(8191), Asked(8192))),
        ("fp8", 16, (Asked(767, 9), Asked(20_000))),
    ],
)
def test_the_stage_agrees_with_torch(kv: str, rows: int, requests: Sequence[Asked]) -> None:
    layer, step = world(requests, rows, kv, seed=3)
    found = judge_attention(layer, run(layer, step), step)
    assert set(found) == {"attention", "caches", "attended", "pads"}
    assert not faults(found), found


@pytest.mark.parametrize("kv", ["fp8", "mxfp4", "bf16"])
def test_a_block_with_several_tasks_leaves_what_several_blocks_leave(kv: str) -> None:
    """Rows change, new tokens come and groups end between the tasks of one block."""
    layer, step = world((Asked(1500), Asked(8300), Asked(5119, 2)), 4, kv, seed=7)
    again = with_sums(picked(step, range(4)), step, range(4))
    run(layer, step)
    run(layer, again, blocks=32)
    for name in ("merged", "attended", "attended_back"):
        assert torch.equal(again.tensors[name], step.tensors[name]), name


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    layer, step = world((Asked(8300), Asked(300, 2)), 4, "fp8", seed=5)
    among = run(layer, step)
    for row in range(3):
        # Over the caches that the step left: a row looks at no token behind its own.
        alone = with_sums(picked(step, [row]), step, [row])
        left = run(among, alone)
        for name in ("merged", "attended", "attended_back"):
            assert torch.equal(alone.tensors[name][:, 0], step.tensors[name][:, row])
        for store, other in zip(left.stores, among.stores, strict=True):
            for part, same in zip(store.parts(), other.parts(), strict=True):
                assert torch.equal(part.view(torch.uint8), same.view(torch.uint8))
