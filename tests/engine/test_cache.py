"""What the cache gives back, and what it costs; who holds a page is in test_configuration."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from infx.engine.arguments import parse
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KINDS, Kinds, KvCache, page_bytes, pages
from infx.engine.memory import needed_bytes
from infx.engine.model import reference
from infx.engine.quant import fp8_round, mxfp4_round, mxfp4_unpack
from infx.engine.ranks.slice import draft_cache
from infx.engine.ranks.target import load_target
from infx.engine.server.info import Info
from infx.engine.shapes import m3, mini
from infx.engine.spec import dspark, eagle
from infx.engine.weights import target_weights
from tests.engine.driving_engine import GREEDY, Driven, outputs, prompt, small

MINI = mini()
SMALL = mini(num_layers=3, aux_layers=(0, 1, 2), block_layers=(0, 1, 2), hidden_size=16)
HEADS, BLOCK, DIM = SMALL.kv_heads, SMALL.block_size, SMALL.head_dim
PAGES = 7
ALL_KINDS = [Kinds(kv, index) for kv, index in itertools.product(KINDS, KINDS)]
SAME = [Kinds(kind, kind) for kind in KINDS]
DRAFTS = {"eagle3": {"method": "eagle3", "k": 3}, "dspark": {"method": "dspark", "k": 7}}


def scaled(x: Tensor) -> Tensor:
    """``x`` [..., dim] in e4m3 with a float32 scale of amax / 448 for each vector."""
    scale = x.abs().amax(-1, keepdim=True) / 448
    return (x / scale.where(scale > 0, 1)).to(torch.float8_e4m3fn).float() * scale


ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "fp32": lambda x: x,
    "bf16": lambda x: x.bfloat16().float(),
    "fp8": scaled,
    "mxfp4": mxfp4_round,
}
INDEX_ROUNDED = ROUNDED | {"fp8": fp8_round}


def draw(seed: int, *size: int) -> Tensor:
    """Numbers of sizes from a thousandth to a thousand."""
    generator = torch.Generator().manual_seed(seed)
    size_of = torch.randn(*size[:-1], 1, generator=generator) * 2
    return torch.randn(*size, generator=generator) * size_of.exp()


def has_index(layer: int) -> bool:
    return SMALL.full_layers <= layer < SMALL.num_layers


def filled(kinds: Kinds, seed: int, tokens: int) -> tuple[KvCache, list[int], list[list[Tensor]]]:
    """A cache with a sequence in shuffled pages, written in chunks; keys, values, index keys."""
    rng = random.Random(seed)
    held = rng.sample(range(PAGES), -(-tokens // BLOCK))
    cache, layers = KvCache.empty(SMALL, PAGES, 1, kinds), SMALL.num_layers + 1
    given = []
    for layer in range(layers):
        keys, values = (draw(seed + 9 * layer + s, tokens, HEADS, DIM) for s in (0, 1))
        given.append([keys, values, draw(seed + 9 * layer + 2, tokens, DIM)])
    start = 0
    while start < tokens:
        end = min(tokens, start + rng.randint(1, 20))
        slots = torch.tensor([held[p // BLOCK] * BLOCK + p % BLOCK for p in range(start, end)])
        for layer, (keys, values, index) in enumerate(given):
            cache.write(layer, slots, keys[start:end], values[start:end])
            if has_index(layer):
                cache.write_index(layer, slots, index[start:end])
        start = end
    return cache, held, given


def read_back_is_the_rounded(kinds: Kinds, seed: int, tokens: int) -> bool:
    cache, held, given = filled(kinds, seed, tokens)
    table, same = torch.tensor([held]), []
    for layer, (keys, values, index) in enumerate(given):
        for told, wanted in zip(cache.read(layer, table[:, None]), (keys, values), strict=True):
            wanted = ROUNDED[kinds.kv](wanted).transpose(0, 1)
            same += [told.dtype == torch.float32, torch.equal(told[0, :, :tokens], wanted)]
            same.append(not told[0, :, tokens:].any())
        if has_index(layer):
            told = cache.read_index(layer, table)
            same.append(torch.equal(told[0, :tokens], INDEX_ROUNDED[kinds.index](index)))
    return all(same)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(ALL_KINDS), st.integers(0, 2**20), st.integers(1, PAGES * BLOCK))
def test_a_sequence_read_through_shuffled_pages_is_its_values_rounded(kinds, seed, tokens):
    assert read_back_is_the_rounded(kinds, seed, tokens)


def test_each_head_reads_the_pages_that_were_chosen_for_it():
    cache, held, given = filled(Kinds("mxfp4", "fp32"), 3, PAGES * BLOCK)
    chosen = torch.tensor([[[[0, 2], [1, 6]], [[5, 4], [3, 3]]]])  # [1, heads, 2 rows, 2 blocks]
    told = cache.read(1, torch.tensor(held)[chosen])
    for mine, values in zip(told, given[1], strict=False):
        blocks = mxfp4_round(values).view(PAGES, BLOCK, HEADS, DIM)
        for head, row in itertools.product(range(HEADS), range(2)):
            wanted = blocks[chosen[0, head, row], :, head].flatten(0, 1)
            assert torch.equal(mine[0, head, row], wanted)


@pytest.mark.parametrize("kinds", SAME, ids=KINDS)
def test_a_slot_holds_what_was_written_last_and_the_others_keep_theirs(kinds):
    cache, held, given = filled(kinds, 5, 40)
    table = torch.tensor([[held]])
    before = torch.stack(cache.read(0, table))
    slot = torch.tensor([held[1] * BLOCK + 3])
    cache.write(0, slot, given[1][0][:1], given[1][1][:1])
    after = torch.stack(cache.read(0, table))
    changed = (before != after).any(-1).any(2).any(0).flatten().nonzero().flatten().tolist()
    assert changed == [BLOCK + 3]


def test_a_swapped_nibble_order_is_seen(monkeypatch):
    """The comparison with rounded values can fail: here the two halves of each byte change."""
    kinds = Kinds("mxfp4", "mxfp4")
    assert read_back_is_the_rounded(kinds, 1, 30)

    def swapped(data: Tensor, scale: Tensor) -> Tensor:
        return mxfp4_unpack(data << 4 | data >> 4, scale)

    form = pages._FORMATS["mxfp4"]
    monkeypatch.setitem(pages._FORMATS, "mxfp4", replace(form, decode=swapped))
    assert not read_back_is_the_rounded(kinds, 1, 30)


def test_a_page_of_one_head_and_side_in_mxfp4_is_8704_bytes():
    """128 tokens of 128 numbers: 64 bytes of codes and 4 of scales a token (M3's shape)."""
    shape = m3()
    assert (shape.block_size, shape.head_dim, shape.kv_heads) == (128, 128, 4)
    both = page_bytes(shape, Kinds("mxfp4", "mxfp4"))
    assert both == (60 * 2 * 4 + 57) * 8704  # three layers attend fully and have no index
    assert page_bytes(shape, Kinds("fp8", "fp8")) == 128 * (60 * 8 * 132 + 57 * 128)


@pytest.mark.parametrize("kinds", ALL_KINDS, ids=lambda kinds: f"{kinds.kv}-{kinds.index}")
@pytest.mark.parametrize(
    ("draft_layers", "features", "full_layers"), [(0, 0, 0), (1, 192, 1), (2, 0, 5)]
)
def test_the_bytes_told_are_those_in_memory(kinds, draft_layers, features, full_layers):
    shape = replace(MINI, full_layers=full_layers)
    cache = KvCache.empty(shape, 5, draft_layers, kinds, features)
    assert cache.nbytes == 5 * page_bytes(shape, kinds, draft_layers, features)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", [*DRAFTS, "none"])
def test_the_memory_that_is_asked_for_is_what_the_target_makes(kind, method):
    kinds = {"kv_cache_dtype": kind, "index_cache_dtype": kind}
    config = small(num_blocks=40, **kinds, **DRAFTS.get(method, {}))
    cache = load_target(config).cache
    assert needed_bytes(config)[1] == cache.nbytes
    assert cache.features.shape == (640, 192 if method == "eagle3" else 0)


@pytest.mark.parametrize("method", DRAFTS)
def test_rank_0s_cache_for_a_draft_holds_nothing_of_the_target(method):
    cache = draft_cache(small(num_blocks=40, **DRAFTS[method]))
    kinds, layers = Kinds(), 2 if method == "dspark" else 1
    features = 192 if method == "eagle3" else 0
    alone = page_bytes(MINI, kinds, layers, features) - page_bytes(MINI, kinds)
    assert cache.nbytes == 40 * alone


@pytest.mark.parametrize(("asked", "told"), [("auto", "fp32"), *((kind, kind) for kind in KINDS)])
def test_the_server_tells_the_kinds_that_it_keeps(asked, told):
    flags = ["--kv-cache-dtype", asked, "--index-cache-dtype", told]
    config = Info(parse(flags)[0]).server()["config"]
    assert (config["kv_cache_dtype"], config["index_cache_dtype"]) == (told, told)


def test_the_pool_and_the_kinds_need_no_torch():
    code = "import sys, infx.engine.cache, infx.engine.config; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_queries_are_saturating_e4m3_beside_mxfp4_keys_alone():
    queries = torch.tensor([17.0, 448.0, 500.0, -1e9, torch.inf, torch.nan])
    four, eight = (KvCache.empty(SMALL, 1, 0, Kinds(kind, "fp32")) for kind in ("mxfp4", "fp8"))
    told = four.query(queries)
    assert told[:5].tolist() == [16.0, 448.0, 448.0, -448.0, 448.0]
    assert told[5].isnan()
    assert eight.query(queries) is queries


@pytest.mark.parametrize("kind", ["mxfp4", "fp32"])
@pytest.mark.parametrize("method", DRAFTS)
def test_target_and_drafts_ask_with_such_queries(monkeypatch, kind, method):
    asked: dict[str, list[Tensor]] = {}

    def spied(module, name):
        own = getattr(module, name)

        def spy(queries, *rest, **more):
            asked.setdefault(module.__name__, []).append(queries)
            return own(queries, *rest, **more)

        monkeypatch.setattr(module, name, spy)

    spied(reference, "full_attention")
    spied(reference, "sparse_attention")
    spied(eagle, "full_attention")
    spied(dspark, "scaled_dot_product_attention")
    outputs(small(kv_cache_dtype=kind, **DRAFTS[method]), [prompt(1, 30)])
    assert len(asked) == 2
    for queries in itertools.chain(*asked.values()):
        assert torch.equal(queries, fp8_round(queries)) == (kind == "mxfp4")


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("bf16", "eagle3"),
        pytest.param("fp8", "eagle3", marks=pytest.mark.slow),
        pytest.param("mxfp4", "eagle3", marks=pytest.mark.slow),
        ("mxfp4", "dspark"),
    ],
)
def test_greedy_decoding_runs_and_shared_pages_give_what_own_ones_do(kind, method):
    config = small(kv_cache_dtype=kind, index_cache_dtype=kind, **DRAFTS[method])
    driven, told = Driven(config), []
    for _ in range(2):
        request = driven.add(prompt(2, 70), GREEDY)
        driven.finish()
        told.append(request.tokens[70:])
    assert request.cached_tokens == 64
    assert told[0] == told[1]
    assert len(told[0]) == GREEDY.max_tokens


def logits(model: reference.ReferenceModel, kinds: Kinds, tokens: tuple[int, ...]) -> Tensor:
    own = list(range(-(-len(tokens) // 16)))
    cache = KvCache.empty(model.shape, len(own), 0, kinds)
    streams = [
        model.forward(make_batch([Span(tokens[at : at + 32], at, own)], 16), cache)[0]
        for at in range(0, len(tokens), 32)
    ]
    return model.head(torch.cat(streams))


@pytest.fixture(scope="module")
def model() -> reference.ReferenceModel:
    """A model without experts: with them a rounding may choose another one, and logits jump."""
    shape = mini(dense_layers=MINI.num_layers)
    return reference.ReferenceModel(shape, target_weights(shape, "random:0"))


# Of 64 tokens every block is chosen, so logits move with the rounding alone. Measured over 8
# prompts: bf16 .0014 to .0016, fp8 .019 to .022, mxfp4 .089 to .107.
@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("bf16", 0.001, 0.002), ("fp8", 0.015, 0.028), ("mxfp4", 0.07, 0.13)],
)
@torch.inference_mode()
def test_logits_move_by_the_measure_of_the_kind(model, kind, least, most):
    """The norm of the difference from fp32 over the norm of the logits, prompt by prompt."""
    for number in range(4):
        tokens = prompt(number, 64)
        exact, coarse = (logits(model, Kinds(k, "fp32"), tokens) for k in ("fp32", kind))
        moved = float((coarse - exact).norm() / exact.norm())
        assert least < moved < most, (kind, number, moved)


@pytest.mark.parametrize("kind", KINDS[1:])
@torch.inference_mode()
def test_a_coarser_index_changes_nothing_but_the_choice_of_blocks(model, kind):
    tokens = prompt(9, 320)
    exact, coarse = (logits(model, Kinds("fp32", k), tokens) for k in ("fp32", kind))
    same = (coarse - exact).abs().amax(-1) < 1e-4 * exact.abs().max()
    assert same[:64].all()
    assert not same[64:].all()
