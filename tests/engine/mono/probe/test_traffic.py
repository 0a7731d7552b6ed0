"""The bytes of a layer's floor."""

from __future__ import annotations

from infx.engine.mono.plan import make_table
from infx.engine.mono.probe.traffic import layer_bytes
from infx.engine.mono.shape import CPU_GRAIN, SHAPES, Caches, cpu

SHAPE = SHAPES["mini"]


def read(union: int, rows: int, context: int, caches: Caches | None = None) -> int:
    table = make_table(SHAPE, "sparse", 16, cpu(1), CPU_GRAIN, caches or Caches())
    return layer_bytes(table, union, rows, context)


def test_a_row_reads_its_experts_and_the_shared_one() -> None:
    expert = 4 * 3 * SHAPE.hidden * SHAPE.expert_size
    assert read(5, 1, 0) - read(4, 1, 0) == expert
    qkv = SHAPE.hidden * (8 + 2 + 2 + 1 + 2) * SHAPE.head_dim
    others = qkv + SHAPE.hidden * 8 * SHAPE.head_dim + SHAPE.hidden * SHAPE.experts
    norms = 2 * SHAPE.hidden + 13 * SHAPE.head_dim + SHAPE.experts
    # One key, one value a kv head, and one index key.
    assert read(4, 1, 0) == 5 * expert + 4 * (others + norms) + 4 * 32 * (2 * 2 + 1)


def test_a_context_is_scored_whole_and_read_by_blocks() -> None:
    chosen = SHAPE.topk_blocks * SHAPE.block
    far, farther = read(4, 1, chosen), read(4, 1, chosen + 100)
    assert farther - far == 100 * 4 * SHAPE.head_dim
    assert read(4, 3, 900) - read(4, 2, 900) == read(4, 2, 900) - read(4, 1, 900)
    small = read(4, 1, 900, Caches("fp8", "fp8"))
    assert read(4, 1, 900) - small == 901 * 3 * 32 + 2 * chosen * 2 * (3 * 32 - 4)
