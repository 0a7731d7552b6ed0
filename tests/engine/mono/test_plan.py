"""What a table says: stages, tasks, placement, memory."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.engine.mono.builder import ALIGNMENT
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import (
    CPU_GRAIN,
    GPU_GRAIN,
    H200,
    KINDS,
    MOST_ROWS,
    SHAPES,
    Caches,
    Formats,
    Kind,
    cpu,
)
from infx.engine.mono.table import Stage, Table
from tests.engine.mono.tiny_layers import table

FORMATS = Formats("fp8", "bf16", "mxfp4")


def rank(width: int, kind: Kind = "sparse", kv: str = "mxfp4") -> Table:
    shape = SHAPES["m3_tp4_rank"]
    return make_table(shape, kind, width, H200, GPU_GRAIN, Caches(kv, kv), FORMATS)


def stages(made: Table) -> list[str]:
    return [stage.name for stage in made.stages]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("dense", "qkv head split merge o dense_up dense_down"),
        ("sparse", "qkv head score select split merge o router up down"),
        ("sparse_dense", "qkv head score select split merge o dense_up dense_down"),
    ],
)
def test_stages_of_each_kind_of_layer(kind: Kind, names: str) -> None:
    assert stages(rank(16, kind)) == names.split()


def test_one_row_merges_in_the_projection_and_deals_experts_by_slot() -> None:
    assert "merge" not in stages(rank(1))
    assert rank(1).stage("up").axes == (("row", 1), ("slot", 5), ("tile", 24))
    assert rank(2).stage("up").axes == (("expert", 129), ("tile", 24))


def test_many_partitions_are_merged_in_groups_of_their_own() -> None:
    assert rank(16).sum("merge").lanes == 1
    merge = rank(16, "dense").sum("merge")
    assert (merge.extent, merge.chunk, merge.lanes) == (512, 32, 16)
    assert merge.schedule(extent=40)[:3] == ((range(32),), (range(32, 40),), ())


def test_tasks_fill_the_blocks_of_an_h200() -> None:
    wide, narrow = rank(16), rank(1)
    tasks = {stage.name: stage.tasks for stage in wide.stages}
    assert (tasks["qkv"], tasks["o"], tasks["down"], tasks["router"]) == (640, 384, 384, 128)
    assert narrow.stage("up").tasks == 120
    for name in ("qkv", "o", "down", "router"):
        rounds = -(-tasks[name] // H200.blocks)
        assert tasks[name] / (rounds * H200.blocks) > 0.96


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 30), st.integers(0, 8))
def test_each_live_task_runs_on_one_block(live: int, blocks: int, extra: int, base: int) -> None:
    stage = Stage("s", (("t", live + extra),), (), (), (), (), base % blocks, blocks)
    runs = Counter(task for block in range(blocks) for task in stage.mine(block, live))
    assert runs == Counter(range(live))
    assert all((stage.base + t) % blocks == b for b in range(blocks) for t in stage.mine(b, live))


def test_a_stage_begins_where_the_last_one_left_blocks_idle() -> None:
    made = rank(4)
    for before, after in zip(made.stages, made.stages[1:], strict=False):
        assert after.base == (before.base + before.tasks) % H200.blocks


@pytest.mark.parametrize("kind", KINDS)
def test_scratch_is_aligned_and_without_holes_larger_than_the_alignment(kind: Kind) -> None:
    made = rank(7, kind)
    placed = [r for r in made.regions if r.space == "scratch"]
    end = 0
    for region in placed:
        assert region.offset % ALIGNMENT == 0
        assert 0 <= region.offset - end < ALIGNMENT
        end = region.offset + region.bytes
    assert made.arena("scratch") == end


def test_what_ranks_exchange_has_two_buffers() -> None:
    made = rank(2)
    first = made.region("o_ranks")
    assert first.exchange
    assert made.region("down_ranks").offset == 2 * first.bytes
    assert made.arena("peer") == 4 * first.bytes
    assert table(width=2).arena("peer") == 0


def test_bytes_of_an_mxfp4_expert_and_of_a_token() -> None:
    made = rank(4)
    expert = sum(made.region(name).bytes for name in ("up_weight", "down_weight")) / 129
    assert expert == 3 * 768 * 6144 * 4.25 / 8
    assert made.region("keys").tile_bytes == 4 * (64 + 4)
    assert rank(4, kv="fp8").region("keys").tile_bytes == 4 * (128 + 4)
    assert rank(4, kv="fp8").region("index_keys").tile_bytes == 4 * 128


def test_weights_that_depend_on_no_data_may_be_fetched_before_the_wait() -> None:
    made = rank(8)
    named = {
        stage.name: {access.region for access in made.prefetchable(stage.name)}
        for stage in made.stages
    }
    assert named["qkv"] == {"attention_norm", "qkv_weight"}
    assert named["o"] == {"o_weight"}
    assert named["router"] == {"mlp_norm", "router_weight"}
    assert named["up"] == set()
    assert "down_weight" not in named["down"]


def test_a_tapped_layer_writes_an_auxiliary_state() -> None:
    assert table(tapped=True).region("aux").writer == "down"
    assert table("dense", tapped=True).region("aux").writer == "dense_down"
    with pytest.raises(KeyError):
        table().region("aux")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_shares_a_stage_among_its_threads(threads: int) -> None:
    for kind in KINDS:
        made = make_table(SHAPES["mini"], kind, MOST_ROWS, cpu(threads), CPU_GRAIN)
        assert all(stage.tasks >= threads for stage in made.stages)
        assert {wait.count for wait in made.stages[-1].waits} == {threads}
