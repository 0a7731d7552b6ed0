"""Attention's kernels, compiled for the CPU, against the reference model at true shapes."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
import torch

from infx.engine.model.attention import choose_blocks
from infx.engine.mono.cuda.attention_truth import compare
from infx.engine.mono.cuda.attention_world import Asked, World, make_world
from tests.engine.mono.cuda.emulated import ATTENTION, KINDS, Emulated
from tests.programs import needs

# A build takes some seconds to compile, a step about one.
pytestmark = [pytest.mark.slow, needs("g++")]
# Fewer blocks than are chosen, as many, more; verify rows; a page's last and first token.
REQUESTS = (Asked(200), Asked(2300, 2))
BLOCKS = 132
ONE = (("attend", 8),)
TWO = (("split", 8), ("merge", 1))


@functools.cache
def build(rows: int, kv: str, index: str) -> Emulated:
    """Return a build, made once a run of the tests."""
    numbers = {"ROWS": rows, "KV_KIND": KINDS[kv], "INDEX_KIND": KINDS[index]}
    return Emulated(Path(tempfile.mkdtemp()) / "build", ATTENTION, numbers)


def run(world: World, stages: tuple[tuple[str, int], ...] = ONE, scores: bool = True) -> World:
    """Return what a step leaves."""
    after = world.copy()
    kernels = build(world.rows, world.keys.kind, world.index.kind)
    if scores:
        kernels.launch("unfused_scores", range(BLOCKS), after.fields())
    for stage, blocks in stages:
        kernels.launch(f"unfused_{stage}", range(blocks * world.rows), after.fields())
    return after


@pytest.mark.parametrize(
    ("kv", "index", "rows", "requests"),
    [
        ("fp8", "fp8", 4, REQUESTS),
        ("bf16", "mxfp4", 4, REQUESTS),
        ("mxfp4", "bf16", 4, REQUESTS),
        ("mxfp4", "fp8", 16, (Asked(0), Asked(126, 3), Asked(2047), Asked(2048, 8))),
    ],
)
def test_a_step_agrees_with_the_reference(
    kv: str, index: str, rows: int, requests: tuple[Asked, ...]
) -> None:
    torch.set_num_threads(1)
    world = make_world(requests, rows, kv, index, seed=3)
    found = compare(world, run(world))
    assert found.good, found


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    world = make_world(REQUESTS, 4, "fp8", "fp8", seed=4)
    among = run(world)
    for row in range(3):
        # Over the caches that the step left: a row looks at no token behind its own.
        tensors = world.only(row).tensors | {"batch_ids": torch.zeros(1, dtype=torch.int32)}
        single = world.with_stores([store.clone() for store in among.stores], tensors)
        single.rows = 1
        alone = run(single)
        assert torch.equal(alone.tensors["merged"][:, 0], among.tensors["merged"][:, row])
        assert torch.equal(alone.tensors["chosen"][0], among.tensors["chosen"][row])


def test_whoever_ends_last_merges_like_a_kernel_of_its_own() -> None:
    world = make_world(REQUESTS, 4, "fp8", "fp8", seed=5)
    one, two = run(world), run(world, TWO)
    assert torch.equal(one.tensors["merged"], two.tensors["merged"])
    assert not one.tensors["merge_counts"].any()


@pytest.mark.parametrize("blocks", [20, 128, 129, 520])
@pytest.mark.parametrize("scores", ["equal", "few", "NaN", "rising"])
def test_blocks_are_chosen_as_the_reference_chooses(blocks: int, scores: str) -> None:
    world = make_world((Asked(blocks * 128 - 5),), 4, "fp8", "fp8", seed=6)
    draw = torch.Generator().manual_seed(blocks)
    given = world.tensors["scores"]
    given[0] = {
        "equal": torch.zeros(1024),
        "few": torch.randint(-2, 3, (1024,), generator=draw).float(),
        "NaN": torch.full((1024,), torch.nan),
        "rising": torch.arange(1024).float(),
    }[scores]
    after = run(world, scores=False)
    # The plan takes NaN for the worst score.
    known = torch.nan_to_num(given[0, :blocks], nan=-torch.inf)[None, None, None]
    wanted = choose_blocks(known, world.tensors["positions"][:1].long()[None], 128, 16)
    assert after.tensors["chosen"][0].tolist() == wanted[0, 0, 0].sort().values.tolist()
