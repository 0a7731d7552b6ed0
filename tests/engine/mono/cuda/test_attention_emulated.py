"""Attention's kernels, compiled for the CPU, against the reference model at true shapes."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
import torch

from infx.engine.model.attention import choose_blocks
from infx.engine.mono.cuda.judge import faults
from infx.engine.mono.cuda.judge_attention import judge_attention
from infx.engine.mono.cuda.random_layer import Layer, copied
from infx.engine.mono.cuda.random_step import Step, picked
from infx.engine.mono.cuda.setting import KINDS, Asked, Setting
from tests.engine.mono.cuda.attention_worlds import attention_world, with_sums
from tests.engine.mono.cuda.emulated import ATTENTION, Emulated
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
    numbers = {"ROWS": rows, "KV_KIND": KINDS.index(kv), "INDEX_KIND": KINDS.index(index)}
    return Emulated(Path(tempfile.mkdtemp()) / "build", ATTENTION, numbers)


def run(
    layer: Layer, step: Step, stages: tuple[tuple[str, int], ...] = ONE, scores: bool = True
) -> Layer:
    """Run ``step``; return the layer with the caches that it leaves."""
    after = copied(layer)
    kernels = build(step.rows, layer.keys.kind, layer.index.kind)
    fields = after.fields | step.tensors
    if scores:
        kernels.launch("unfused_scores", range(BLOCKS), fields)
    for stage, blocks in stages:
        kernels.launch(f"unfused_{stage}", range(blocks * step.rows), fields)
    return after


@pytest.mark.parametrize(
    ("kv", "index", "rows", "requests"),
    [
        ("fp8", "fp8", 4, REQUESTS),
        ("bf16", "mxfp4", 4, REQUESTS),
        ("mxfp4", "bf16", 4, REQUESTS),
        ("mxfp4", "fp8", 16, (Asked(0), Asked(126, 3), Asked(2047), Asked(2048, 8))),
        ("fp8", "fp8", 16, Setting(context=3001, rows_per_request=8, pads=3).requests(16)),
    ],
)
def test_a_step_agrees_with_the_reference(
    kv: str, index: str, rows: int, requests: tuple[Asked, ...]
) -> None:
    torch.set_num_threads(1)
    layer, step = attention_world(requests, rows, kv, index, seed=3)
    found = judge_attention(layer, run(layer, step), step)
    assert not faults(found), found


@pytest.mark.parametrize("field", ["queries", "keys", "scores", "chosen", "merged", "attended"])
def test_the_judge_finds_what_is_wrong(field: str) -> None:
    layer, step = attention_world(REQUESTS, 4, "fp8", "fp8", seed=3)
    after = run(layer, step)
    wrong = (after.fields | step.tensors)[field]
    row = {"keys": wrong, "scores": wrong[1], "chosen": wrong[1]}.get(field, wrong[:, 1])
    row.copy_(row.flip(-1))
    names = {
        "queries": {"queries"},
        "keys": {"caches"},
        "scores": {"scores", "own-blocks"},
        # Blocks in another order are the same blocks, and another sum.
        "chosen": {"own-blocks"},
        "merged": {"attention", "attended"},
        "attended": {"attended"},
    }
    assert set(faults(judge_attention(layer, after, step))) == names[field]


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    layer, step = attention_world(REQUESTS, 4, "fp8", "fp8", seed=4)
    left = run(layer, step)
    for row in range(3):
        # Over the caches that the step left: a row looks at no token behind its own.
        single = with_sums(picked(step, [row]), step, [row])
        run(left, single)
        assert torch.equal(single.tensors["merged"][:, 0], step.tensors["merged"][:, row])
        assert torch.equal(single.tensors["chosen"][0], step.tensors["chosen"][row])


def test_whoever_ends_last_merges_like_a_kernel_of_its_own() -> None:
    layer, one = attention_world(REQUESTS, 4, "fp8", "fp8", seed=5)
    two = with_sums(picked(one, range(4)), one, range(4))
    run(layer, one)
    run(layer, two, TWO)
    assert torch.equal(one.tensors["merged"], two.tensors["merged"])
    assert not one.tensors["merge_counts"].any()


@pytest.mark.parametrize("kv", ["fp8", "mxfp4", "bf16"])
def test_rows_alone_need_nothing_but_scores_of_the_stage_before(kv: str) -> None:
    requests = (Asked(200), Asked(2304), Asked(3000), Asked(255))
    layer, step = attention_world(requests, 4, kv, "fp8", seed=7)
    alone = with_sums(picked(step, range(4)), step, range(4))
    staged, direct = run(layer, step), copied(layer)
    kernels, fields = build(4, kv, "fp8"), direct.fields | alone.tensors
    kernels.launch("direct_scores", range(BLOCKS), fields)
    assert torch.isnan(alone.tensors["queries"]).all()
    kernels.launch("direct_attend", range(8 * 4), fields)
    for ours, theirs in zip(direct.stores, staged.stores, strict=True):
        for part, other in zip(ours.parts(), theirs.parts(), strict=True):
            assert torch.equal(part.view(torch.uint8), other.view(torch.uint8))
    for name in ("chosen", "merged", "attended", "attended_back"):
        assert torch.equal(alone.tensors[name], step.tensors[name]), name


@pytest.mark.parametrize("blocks", [20, 128, 129, 520])
@pytest.mark.parametrize("scores", ["equal", "few", "NaN", "rising"])
def test_blocks_are_chosen_as_the_reference_chooses(blocks: int, scores: str) -> None:
    layer, step = attention_world((Asked(blocks * 128 - 5),), 4, "fp8", "fp8", seed=6)
    draw = torch.Generator().manual_seed(blocks)
    given = step.tensors["scores"]
    given[0] = {
        "equal": torch.zeros(1024),
        "few": torch.randint(-2, 3, (1024,), generator=draw).float(),
        "NaN": torch.full((1024,), torch.nan),
        "rising": torch.arange(1024).float(),
    }[scores]
    run(layer, step, scores=False)
    # The plan takes NaN for the worst score.
    known = torch.nan_to_num(given[0, :blocks], nan=-torch.inf)[None, None, None]
    wanted = choose_blocks(known, step.tensors["positions"][:1].long()[None], 128, 16)
    assert step.tensors["chosen"][0].tolist() == wanted[0, 0, 0].sort().values.tolist()
