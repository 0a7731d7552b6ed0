"""Attention over all keys, compiled for the CPU, against torch at true shapes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from infx.engine.mono.cuda.attention_world import Asked, Store, World, make_world
from infx.engine.mono.cuda.dense_layer import dense_scratch, qkv_heads
from infx.engine.mono.cuda.judge_full import judge_full
from infx.engine.mono.shape import KINDS as LAYER_KINDS
from tests.engine.mono.cuda.emulated import KINDS, Emulated
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]
BLOCKS, DIM = 132, 128
CACHES = ("keys", "key_scales", "values", "value_scales")
PER_ROW = ("batch_ids", "positions", "slots", "pages", "rotary")
OF_A_ROW = ("qkv_sums", "qkv_squares", "merged", "attended", "attended_back")


@functools.cache
def build(rows: int, kv: str) -> Emulated:
    """Return a build, made once a run of the tests."""
    numbers = {"ROWS": rows, "KV_KIND": KINDS[kv], "LAYER_KIND": LAYER_KINDS.index("dense")}
    folder = Path(tempfile.mkdtemp()) / "build"
    return Emulated(folder, {"full.cu": ("unfused_full",)}, numbers)


def fields_of(world: World, rows: int, seed: int) -> dict[str, Tensor]:
    """Return what the stage gets, in memory of its own; what nobody wrote is NaN."""
    draw, heads = torch.Generator().manual_seed(seed), qkv_heads("dense")
    fields = world.copy().fields() | dense_scratch(rows, "dense", "cpu")
    fields["qkv_sums"] = torch.randn(4, rows, heads * DIM, generator=draw)
    fields["head_norm"] = 1 + 0.1 * torch.randn(heads - 1, DIM, generator=draw)
    return fields


def run(rows: int, kv: str, fields: dict[str, Tensor]) -> None:
    build(rows, kv).launch("unfused_full", range(BLOCKS), fields)
    assert not fields["merge_counts"].any()  # ready for the next launch


def stores(kv: str, fields: dict[str, Tensor]) -> tuple[Store, Store]:
    keys, values = (
        Store(kv, True, fields[f"{name}s"], fields.get(f"{name}_scales"))
        for name in ("key", "value")
    )
    return keys, values


@pytest.mark.parametrize(
    ("kv", "rows", "requests"),
    [
        # Pads, verify rows, the tokens of a step on both sides of a partition's edge.
        ("fp8", 4, (Asked(0), Asked(2300, 2))),
        ("fp8", 4, (Asked(254, 4),)),
        ("mxfp4", 4, (Asked(254, 3),)),
        ("bf16", 4, (Asked(127, 2), Asked(4095))),
        # A second group of partitions, begun and full; more rows of a request than turns of warps.
        ("mxfp4", 4, (Asked(4096), Asked(8191))),
        ("fp8", 16, (Asked(767, 9), Asked(20_000))),
    ],
)
def test_the_stage_agrees_with_torch(kv: str, rows: int, requests: Sequence[Asked]) -> None:
    torch.set_num_threads(1)
    world = make_world(requests, rows, kv, "fp8", seed=3)
    fields = fields_of(world, rows, seed=4)
    run(rows, kv, fields)
    found = judge_full(fields, (world.keys, world.values), stores(kv, fields))
    assert found["caches"] == found["pads"] == 0
    assert found["attention"] < {"fp8": 2**-11, "mxfp4": 2**-9, "bf16": 2**-8}[kv]
    assert found["attended"] < 2**-11


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    torch.set_num_threads(1)
    world = make_world((Asked(4200), Asked(300, 2)), 4, "fp8", "fp8", seed=5)
    among = fields_of(world, 4, seed=6)
    run(4, "fp8", among)
    for row in range(3):
        # Over the caches that the step left: a row looks at no token behind its own.
        alone = {name: tensor.clone() for name, tensor in among.items()}
        alone |= dense_scratch(1, "dense", "cpu")
        alone |= {name: among[name][row : row + 1].contiguous() for name in PER_ROW}
        alone |= {name: among[name][:, row : row + 1].contiguous() for name in OF_A_ROW}
        run(1, "fp8", alone)
        assert torch.equal(alone["merged"][:, 0], among["merged"][:, row])
        for name in CACHES:
            assert torch.equal(alone[name].view(torch.uint8), among[name].view(torch.uint8))
