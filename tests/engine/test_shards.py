"""How a model is divided among ranks: shapes, weights, and what is told of a batch."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from infx.engine.batch import Span, make_batch
from infx.engine.memory import needed_bytes
from infx.engine.model.experts import mix, route
from infx.engine.model.layers import gemma_norm, swiglu_oai
from infx.engine.ranks.division import SERVED, kv_heads_of, shape_of_rank, undivided
from infx.engine.ranks.shard import shard
from infx.engine.ranks.wire import pack, unpack
from infx.engine.shapes import m3, m3_1, m3_tp4_rank, mini, mini_3_1
from infx.engine.weights import target_weights
from tests.engine.driving_engine import small
from tests.engine.threaded_ranks import threaded_streams

torch.set_num_threads(1)

SHAPES = {
    "mini": mini(num_layers=3, aux_layers=(0, 1, 2), block_layers=(0,)),
    "mini_3_1": replace(mini_3_1(), num_layers=3, aux_layers=(0, 1, 2), block_layers=(0,)),
}
WHOLE = {
    name: {
        key: torch.randn_like(tensor) if key.endswith("head_norm") else tensor
        for key, tensor in target_weights(shape, "random:0").items()
    }
    for name, shape in SHAPES.items()
}
CASES = [(name, ranks) for name in SHAPES for ranks in SERVED]
X = torch.randn(7, 192, generator=torch.Generator().manual_seed(1))


def shards(name: str, ranks: int) -> list[dict[str, torch.Tensor]]:
    return [shard(WHOLE[name], SHAPES[name], rank, ranks) for rank in range(ranks)]


def heads(weights, shape, layer: int) -> list[torch.Tensor]:
    """Normed q, k, the indexer's q and k where it has them, and v, each [rows, heads, dim]."""
    flat = (X @ weights[f"layers.{layer}.qkv"]).view(len(X), -1, shape.head_dim)
    index = [shape.kv_heads, 1] if shape.attends_sparsely(layer) else []
    kinds = list(flat.split([shape.heads, shape.kv_heads, *index, shape.kv_heads], dim=1))
    norms = weights[f"layers.{layer}.head_norm"]
    normed = gemma_norm(torch.cat(kinds[:-1], dim=1), norms, shape.rms_norm_eps)
    return [*normed.split([kind.shape[1] for kind in kinds[:-1]], dim=1), kinds[-1]]


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_a_rank_computes_its_own_heads(name, ranks):
    shape, narrow = SHAPES[name], shape_of_rank(SHAPES[name], ranks)
    for layer in range(shape.num_layers):
        q, *kinds = heads(WHOLE[name], shape, layer)
        own = [heads(weights, narrow, layer) for weights in shards(name, ranks)]
        torch.testing.assert_close(torch.cat([mine[0] for mine in own], dim=1), q)
        for rank, (_, *mine) in enumerate(own):
            assert len(mine) == len(kinds)
            for kind, one in zip(kinds, mine, strict=True):
                kv = list(kv_heads_of(shape, rank, ranks)) if kind.shape[1] > 1 else [0]
                torch.testing.assert_close(one, kind[:, kv])


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_the_products_of_o_are_parts_of_a_sum(name, ranks):
    mixed = torch.randn(7, SHAPES[name].heads * SHAPES[name].head_dim)
    own = mixed.chunk(ranks, dim=1)
    for layer in range(SHAPES[name].num_layers):
        key = f"layers.{layer}.o"
        parts = [x @ part[key] for x, part in zip(own, shards(name, ranks), strict=True)]
        torch.testing.assert_close(sum(parts), mixed @ WHOLE[name][key], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "ranks"), CASES)
def test_mlps_and_experts_are_parts_of_a_sum(name, ranks):
    def mlp(weights, at: str):
        return swiglu_oai(X @ weights[at + "up"], 1.702, 7.0) @ weights[at + "down"]

    def experts(weights, at: str):
        chosen, weight = route(X, weights[at + "router"], weights[at + "router_bias"], 4, 2.0)
        up, down = weights[at + "experts_up"], weights[at + "experts_down"]
        return mix(X, chosen, weight, up, down, 1.702, 7.0)

    parts = shards(name, ranks)
    for layer in range(SHAPES[name].num_layers):
        kinds = [mlp, experts] if SHAPES[name].has_experts(layer) else [mlp]
        for product in kinds:
            at = f"layers.{layer}."
            total = sum(product(weights, at) for weights in parts)
            torch.testing.assert_close(total, product(WHOLE[name], at), rtol=1e-4, atol=1e-4)


def test_what_is_not_cut_is_whole_and_rank_0_alone_has_a_head():
    whole, (first, second) = WHOLE["mini"], shards("mini", 2)
    for key in ("embed", "norm", "layers.1.router", "layers.1.router_bias", "layers.1.mlp_norm"):
        assert torch.equal(first[key], whole[key])
        assert torch.equal(second[key], whole[key])
    assert torch.equal(first["head"], whole["head"])
    assert second["head"].shape == (192, 0)
    assert first.keys() == second.keys() == whole.keys()


@given(
    kv_heads=st.sampled_from((1, 2, 3, 4, 8)),
    group=st.integers(1, 8),
    ranks=st.sampled_from(SERVED),
)
def test_a_rank_has_the_kv_head_that_each_of_its_q_heads_reads(kv_heads, group, ranks):
    shape = mini(heads=kv_heads * group, kv_heads=kv_heads)
    assume(not undivided(shape, ranks))
    narrow = shape_of_rank(shape, ranks)
    for rank in range(ranks):
        kv = kv_heads_of(shape, rank, ranks)
        assert len(kv) == narrow.kv_heads
        for own in range(narrow.heads):
            local = own // (narrow.heads // narrow.kv_heads)
            assert kv[local] == (rank * narrow.heads + own) // group


@pytest.mark.parametrize(
    ("shape", "ranks", "why"),
    [
        (mini(), 3, "expected one of 1, 2, 4"),
        (mini(), 8, "expected one of 1, 2, 4"),
        (mini(), 0, "expected one of 1, 2, 4"),
        (mini(heads=6, kv_heads=2), 4, "heads 6 of mini is no multiple"),
        (mini(heads=12, kv_heads=3), 2, "nor repeats the kv_heads 3"),
        (mini(expert_size=94, dense_size=30), 4, "expert_size 94 of mini is no multiple of it; d"),
        (m3_tp4_rank(), 4, "slice of one of 4 ranks already"),
    ],
)
def test_a_division_that_does_not_fit_says_why(shape, ranks, why):
    assert why in undivided(shape, ranks)


@pytest.mark.parametrize("shape", [mini(), mini_3_1(), m3(), m3_1()])
def test_the_family_divides_among_every_served_number_of_ranks(shape):
    assert [undivided(shape, ranks) for ranks in SERVED] == ["", "", ""]


def test_a_rank_of_four_has_the_shape_of_the_simulated_one():
    rank = shape_of_rank(m3(), 4)
    simulated = m3_tp4_rank()
    for name in ("heads", "kv_heads", "expert_size", "shared_size", "dense_size"):
        assert getattr(rank, name) == getattr(simulated, name)


def test_memory_is_that_of_all_ranks():
    weights, cache = needed_bytes(small())
    assert needed_bytes(small(tp=2)) == (2 * weights, cache + index_bytes(1))
    # Four ranks, two kv heads: each is kept twice.
    assert needed_bytes(small(tp=4)) == (4 * weights, 2 * cache + index_bytes(2))
    drafts = needed_bytes(small(method="eagle3", k=3))[1]
    pages = small(method="eagle3", k=3).pages / small().pages
    assert needed_bytes(small(tp=2, method="eagle3", k=3))[1] == drafts + index_bytes(1) * pages


def index_bytes(ranks: int) -> int:
    """The indexer's keys of the sparse layers, which every rank keeps whole, of ``ranks`` ranks."""
    sparse = mini().num_layers - mini().full_layers
    return ranks * small().pages * sparse * mini().block_size * mini().head_dim * 4


spans = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 40), st.integers(0, 2)), min_size=1, max_size=6
)


@given(spans, st.integers(0, 20))
def test_a_batch_arrives_as_it_was_sent(sizes, width):
    made = [Span(list(range(rows)), start, list(range(9, 20)), dead) for rows, start, dead in sizes]
    sent = make_batch(made, 4, width)
    got = unpack(bytearray(pack(sent)))
    for field in fields(sent):
        one, other = getattr(sent, field.name), getattr(got, field.name)
        if field.name == "groups":
            for a, b in zip(one, other, strict=True):
                assert (a.first, a.spans, a.rows) == (b.first, b.spans, b.rows)
                assert torch.equal(a.table, b.table)
        elif isinstance(one, torch.Tensor) and field.name != "previous":
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
    assert (got.firsts, got.rows, got.grouped) == (sent.firsts, sent.rows, sent.grouped)


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_that_meet_in_sums_compute_what_one_computes(ranks):
    pages = list(range(12))
    tokens = [(7 * n) % 95 + 32 for n in range(150)]
    batches = [make_batch([Span(tokens, 0, pages)], 16), make_batch([Span([65], 150, pages)], 16)]
    (alone,) = threaded_streams(small(), batches, (0,))
    for streams in threaded_streams(small(tp=ranks), batches, range(ranks)):
        for one, other in zip(alone, streams, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * float(one.abs().max()))
