"""Mono over the engine's own weights and caches, against the reference model."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.model.reference import ReferenceModel
from infx.engine.mono.cpu.bind import Mono, kind_of, layer_cache, layer_shape, rows_of
from infx.engine.shapes import ModelConfig, mini, mini_3_1
from infx.engine.weights import target_weights

LAYERS = range(5)
PAGES = (tuple(range(8)), (11, 9, 10, 8), (12, 13))
CONTEXTS = (100, 17, 0)
VERIFY = (4, 1, 2)


def spans(counts: tuple[int, ...], starts: tuple[int, ...], seed: int) -> list[Span]:
    draw = random.Random(seed)
    return [
        Span([draw.randrange(320) for _ in range(count)], start, pages)
        for count, start, pages in zip(counts, starts, PAGES, strict=True)
        if count
    ]


def verify_step(width: int = 9) -> Batch:
    return make_batch(spans(VERIFY, CONTEXTS, 2), 16, width)


# A cache that rounds turns one ulp into one code now and then: 2^-8 of a number in bf16.
@pytest.mark.slow
@pytest.mark.parametrize("make", [mini, mini_3_1])
@pytest.mark.parametrize(
    ("kv", "index", "limit"),
    [
        ("fp32", "fp32", 5e-5),
        ("bf16", "fp8", 2e-3),
        ("fp8", "bf16", 2e-2),
        ("mxfp4", "mxfp4", 5e-2),
    ],
)
@torch.inference_mode()
def test_layers_agree_with_the_reference(
    make: Callable[[], ModelConfig], kv: str, index: str, limit: float
) -> None:
    torch.set_num_threads(1)
    model = make()
    weights = target_weights(model, "random:7")
    reference = ReferenceModel(model, weights, taps=LAYERS)
    cache = KvCache.empty(model, 14, kinds=Kinds(kv, index))
    reference.forward(make_batch(spans(CONTEXTS, (0, 0, 0), 1), 16), cache)
    borrowed, batch = copy.deepcopy(cache), verify_step()
    mono = Mono(model, weights, borrowed, taps=LAYERS)
    mono.prepare_step(*rows_of(batch))
    after = reference.forward(batch, cache)[1].split(model.hidden_size, dim=1)
    live = batch.live
    # Each layer gets the reference's input, so that a code that flips is not carried on.
    before = [weights["embed"][batch.tokens], *after[:-1]]
    for number, (given, wanted) in enumerate(zip(before, after, strict=True)):
        out, aux = (np.full(given.shape, np.nan, dtype=np.float32) for _ in range(2))
        mono.forward_layer(number, given.contiguous().numpy(), out, aux)
        torch.testing.assert_close(torch.tensor(out)[live], wanted[live], rtol=limit, atol=limit)
        assert out.tobytes() == aux.tobytes()
    pages = torch.tensor([[PAGES[0]]])
    for number in LAYERS:
        for ours, theirs in zip(
            borrowed.read(number, pages), cache.read(number, pages), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=2 * limit, atol=2 * limit)


def test_a_layers_cache_is_the_engines_own_memory() -> None:
    for kv, index in (("fp32", "bf16"), ("bf16", "fp8"), ("fp8", "mxfp4"), ("mxfp4", "fp32")):
        cache = KvCache.empty(mini(), 3, kinds=Kinds(kv, index))
        held = [part.data_ptr() for part in (*cache._kv.parts, *cache._index.parts)]
        views = layer_cache(cache, 1, sparse=True)
        taken = [view.ctypes.data for view in (views.kv, views.index)]
        # Layer 1 is the second with keys and the first with index keys.
        first = cache._kv.parts[0]
        assert taken[0] == held[0] + first[0].nbytes
        assert taken[1] == held[len(cache._kv.parts)]


def test_rows_of_a_batch_have_their_requests_pages_and_slots() -> None:
    ids, positions, slots, pages = rows_of(verify_step())
    assert ids.tolist() == [0, 0, 0, 0, 1, 2, 2, -1, -1]
    assert positions.tolist()[:7] == [100, 101, 102, 103, 17, 0, 1]
    assert slots.tolist()[:7] == [100, 101, 102, 103, 145, 192, 193]
    assert [line[:2] for line in pages.tolist()] == [[0, 1]] * 4 + [[11, 9], [12, 0], [12, 0]] + [
        [0, 0]
    ] * 2


def test_models_that_mono_does_not_do_are_refused() -> None:
    with pytest.raises(ValueError, match="shared_size 48"):
        layer_shape(mini(shared_size=48))
    with pytest.raises(ValueError, match="experts and full attention"):
        kind_of(mini(full_layers=2), 1)


@pytest.mark.slow
def test_steps_that_no_build_takes_are_refused() -> None:
    model = mini()
    mono = Mono(model, target_weights(model, "random:7"), KvCache.empty(model, 14))
    ids, at = np.zeros(17, dtype=np.int32), np.zeros(17, dtype=np.int32)
    pages = np.zeros((17, 1), dtype=np.int32)
    with pytest.raises(ValueError, match="17 rows"):
        mono.prepare_step(ids, at, at, pages)
    with pytest.raises(ValueError, match="int64"):
        mono.prepare_step(ids[:3].astype(np.int64), at[:3], at[:3], pages[:3])
    with pytest.raises(ValueError, match="3 batch ids, 4 positions"):
        mono.prepare_step(ids[:3], at[:4], at[:3], pages[:3])
    with pytest.raises(ValueError, match="position 16 with 1 pages"):
        mono.prepare_step(ids[:2], at[:2] + 16, at[:2], pages[:2])
