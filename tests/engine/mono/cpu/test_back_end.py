"""The back end over the engine's own weights and caches: its answers, and the reference model's."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.model.reference import ReferenceModel
from infx.engine.mono.cpu.back_end import CpuBackEnd, packed_layers
from infx.engine.mono.cpu.calls import CacheAddresses, LayerCall, Memory, Rows
from infx.engine.mono.cpu.kinds import kind_of, layer_shape
from infx.engine.mono.plan import make_table
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import CPU_GRAIN, cpu
from infx.engine.mono.step import StepRows
from infx.engine.shapes import ModelConfig, mini, mini_3_1
from infx.engine.weights import target_weights

LAYERS = range(5)
PAGES = (tuple(range(8)), (11, 9, 10, 8), (12, 13))
CONTEXTS = (100, 17, 0)
VERIFY = (4, 1, 2)
WIDTH = 16


def spans(counts: tuple[int, ...], starts: tuple[int, ...], seed: int) -> list[Span]:
    draw = random.Random(seed)
    return [
        Span([draw.randrange(320) for _ in range(count)], start, pages)
        for count, start, pages in zip(counts, starts, PAGES, strict=True)
        if count
    ]


def verify_step(width: int = 9) -> Batch:
    return make_batch(spans(VERIFY, CONTEXTS, 2), 16, width)


def rows_of(batch: Batch) -> StepRows:
    rows, most = batch.rows, max(group.table.shape[1] for group in batch.groups)
    slots, pages = np.zeros(rows, dtype=np.int64), np.zeros((rows, most), dtype=np.int32)
    slots[batch.live.numpy()] = batch.slots.numpy()
    for group in batch.groups:
        pages[group.slice, : group.table.shape[1]] = group.table.numpy().repeat(group.rows, axis=0)
    ids, positions = batch.batch_ids.numpy(), batch.positions.numpy()
    return StepRows(ids, positions, slots, pages, requests=len(batch.groups))


def made(cache: KvCache | None = None, model: ModelConfig | None = None) -> CpuBackEnd:
    model = model or mini()
    layers = packed_layers(model, target_weights(model, "random:7"))
    return CpuBackEnd(model, layers, cache or KvCache.empty(model, 14))


# A cache that rounds turns one ulp into one code now and then: 2^-8 of a number in bf16.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("make", "kv", "index", "limit"),
    [(mini, "fp32", "fp32", 5e-5), (mini_3_1, "fp8", "bf16", 2e-2)],
)
@torch.inference_mode()
def test_layers_agree_with_the_reference(
    make: Callable[[], ModelConfig], kv: str, index: str, limit: float, mini_builds: None
) -> None:
    torch.set_num_threads(1)
    model = make()
    weights = target_weights(model, "random:7")
    reference = ReferenceModel(model, weights, taps=LAYERS)
    cache = KvCache.empty(model, 14, kinds=Kinds(kv, index))
    reference.forward(make_batch(spans(CONTEXTS, (0, 0, 0), 1), 16), cache)
    borrowed, batch = copy.deepcopy(cache), verify_step()
    back_end = made(borrowed, model)
    assert back_end.build(WIDTH) is None
    back_end.prepare(rows_of(batch), WIDTH)
    after = reference.forward(batch, cache)[1].split(model.hidden_size, dim=1)
    live = batch.live
    # Each layer gets the reference's input, so that a code that flips is not carried on.
    before = [weights["embed"][batch.tokens], *after[:-1]]
    for number, (given, wanted) in enumerate(zip(before, after, strict=True)):
        stream = given.contiguous().numpy()
        out, other = (np.full(given.shape, np.nan, dtype=np.float32) for _ in range(2))
        back_end.run(number, stream, out)
        torch.testing.assert_close(torch.tensor(out)[live], wanted[live], rtol=limit, atol=limit)
        back_end.run_unfused(number, stream, other)
        assert out.tobytes() == other.tobytes()
    pages = torch.tensor([[PAGES[0]]])
    for number in LAYERS:
        for ours, theirs in zip(
            borrowed.read(number, pages), cache.read(number, pages), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=2 * limit, atol=2 * limit)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rows_that_would_write_elsewhere_are_refused(mini_builds: None) -> None:
    back_end = made()
    assert back_end.build(WIDTH) is None
    ids, at = np.zeros(17, dtype=np.int32), np.zeros(17, dtype=np.int64)
    pages = np.zeros((17, 1), dtype=np.int32)
    good = StepRows(ids[:2], at[:2], at[:2], pages[:2])
    back_end.prepare(good, WIDTH)
    faults = {
        "more rows": StepRows(ids, at, at, pages),
        "beyond its row's pages": replace(good, positions=at[:2] + 16),
        "a position is below 0": replace(good, positions=at[:2] - 1),
        "a slot is outside": replace(good, slots=at[:2] + 14 * 16),
        "a page is outside": replace(good, pages=pages[:2] + 14),
    }
    for match, step in faults.items():
        with pytest.raises(ValueError, match=match):
            back_end.prepare(step, WIDTH)
    # A pad may say anything of itself.
    pads = replace(good, batch_ids=ids[:2] - 1, positions=at[:2] + 10**6, slots=at[:2] - 5)
    back_end.prepare(pads, WIDTH)
    stream = np.ones((2, 192), dtype=np.float32)
    back_end.run(1, stream, stream)
    assert not stream.any()
    assert (back_end.routing(1) == -1).all()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_streams_that_are_no_rows_of_float32_are_refused(mini_builds: None) -> None:
    back_end = made()
    assert back_end.build(WIDTH) is None
    one = np.zeros(1, dtype=np.int64)
    back_end.prepare(StepRows(one.astype(np.int32), one, one, np.zeros((1, 1), np.int32)), WIDTH)
    stream = np.ones((1, 192), dtype=np.float32)
    sealed = stream.copy()
    sealed.flags.writeable = False
    back_end.run(1, sealed, stream.copy())
    # Kernels know no bounds: a stream that is too small would be written beyond its end.
    for wrong in (
        stream.astype(np.float64),
        np.ones((1, 384), dtype=np.float32)[:, ::2],
        np.ones((0, 192), dtype=np.float32),
        np.ones((2, 192), dtype=np.float32),
        np.ones((1, 191), dtype=np.float32),
        np.ones(192, dtype=np.float32),
        torch.ones(1, 192),
    ):
        for given in ((wrong, stream), (stream, wrong)):
            for run in (back_end.run, back_end.run_unfused):
                with pytest.raises(ValueError, match=r"expected float32 \[1, 192\], contiguous"):
                    run(1, *given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the second writable"):
        back_end.run(1, stream, sealed)
    assert (stream == 1).all()


def refused(back_end: CpuBackEnd) -> Refusal:
    refusal = back_end.refuse()
    assert refusal
    assert refusal.level == "bind"
    return refusal


def test_what_was_handed_in_is_judged() -> None:
    model = mini()
    layers = packed_layers(model, target_weights(model, "random:7"))
    cache = KvCache.empty(model, 14)

    def answer(number: int, weights: object) -> Refusal:
        handed = [*layers[:number], weights, *layers[number + 1 :]]
        return refused(CpuBackEnd(model, handed, cache))  # type: ignore[arg-type]

    assert CpuBackEnd(model, layers, cache).refuse() is None
    assert refused(CpuBackEnd(model, layers[:4], cache)).code == "mono-layer-count"
    assert answer(2, torch.tensor(layers[2])).code == "mono-residency"
    assert answer(2, layers[0]).code == "mono-weights"
    assert answer(2, layers[2].astype(np.float16)).code == "mono-weights"
    assert answer(2, np.repeat(layers[2], 2)[::2]).code == "mono-strides"
    shifted = np.zeros(layers[2].size + 17, dtype=np.float32)
    first = (-shifted.ctypes.data % 64) // 4 + 1
    assert answer(2, shifted[first : first + layers[2].size]).code == "mono-alignment"
    coarse = KvCache.empty(replace(model, block_size=32), 7)
    assert refused(CpuBackEnd(model, layers, coarse)).code == "mono-cache"
    meta = replace(cache, _kv=replace(cache._kv, parts=(cache._kv.parts[0].to("meta"),)))
    assert refused(CpuBackEnd(model, layers, meta)).code == "mono-residency"
    turned = replace(cache, _kv=replace(cache._kv, parts=(cache._kv.parts[0].transpose(2, 3),)))
    assert refused(CpuBackEnd(model, layers, turned)).code == "mono-strides"


def test_a_layers_cache_is_the_engines_own_memory() -> None:
    for kv, index in (("fp32", "bf16"), ("bf16", "fp8"), ("fp8", "mxfp4"), ("mxfp4", "fp32")):
        cache = KvCache.empty(mini(), 3, kinds=Kinds(kv, index))
        taken = CacheAddresses.of(*cache.layer_parts(1))
        # Layer 1 is the second with keys and the first with index keys.
        whole = cache._kv.parts[0]
        assert taken.keys == whole.data_ptr() + whole[0].nbytes
        assert taken.values == taken.keys + whole[0].nbytes // 2
        assert taken.index == cache._index.parts[0].data_ptr()
        assert bool(taken.value_scales) == (kv in ("fp8", "mxfp4"))
        assert bool(taken.index_scales) == (index == "mxfp4")
        assert CacheAddresses.of(*cache.layer_parts(0)).index == 0


def test_all_that_stages_leave_to_each_other_can_be_filled() -> None:
    table = make_table(layer_shape(mini()), "sparse", WIDTH, cpu(1), CPU_GRAIN)
    memory, turns = Memory(table), np.zeros((1, 16), dtype=np.float32)
    weights = np.zeros(1, dtype=np.float32)
    call = LayerCall(table, Rows(table, turns, 1), memory, weights, CacheAddresses(0, 0, 0, 0))
    call.fill_scratch(0xFF)
    assert np.isnan(memory.scratch).all()
    assert (memory.ints == -1).all()
    assert np.isnan(call.routing).all()


def test_models_that_mono_does_not_do_are_refused() -> None:
    with pytest.raises(ValueError, match="shared_size 48"):
        layer_shape(mini(shared_size=48))
    with pytest.raises(ValueError, match="experts and full attention"):
        kind_of(mini(full_layers=2), 1)
