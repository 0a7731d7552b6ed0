"""The CUDA back end up to the launch: what it borrows, takes, refuses, and hands to kernels."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from infx.domain.errors import InfraError
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.mono.cuda import back_end
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.back_end import CudaBackEnd
from infx.engine.mono.cuda.borrowed import cache_fields
from infx.engine.mono.cuda.gave_up import WAITS
from infx.engine.mono.cuda.probed import few_layers
from infx.engine.mono.cuda.scratch import SHAPE
from infx.engine.mono.cuda.setting import KINDS
from infx.engine.mono.cuda.source import KERNELS
from infx.engine.mono.cuda.step_numbers import DeviceArray
from infx.engine.mono.cuda.store import Store
from infx.engine.mono.dispatch import DEVICES, Deployment
from infx.engine.mono.library import BackEnd, Mono, StepRows
from infx.engine.mono.refusal import Refusal
from infx.engine.shapes import mini
from tests.engine.mono.cuda import toy_arms
from tests.engine.mono.cuda.toy_arms import HIDDEN, ToyArms, at

PAGES, BLOCK = 6, 128
FP8 = Kinds("fp8", "fp8")
WIDTH = 4


class Hosted:
    """Two layers over a cache of ``kinds``, and a step of three rows and a pad."""

    def __init__(self, kinds: Kinds = FP8) -> None:
        self.model, self.weights = few_layers(2), [toy_arms.unwritten_weights() for _ in range(2)]
        self.cache = KvCache.empty(self.model, PAGES, kinds=kinds)
        self.back_end = CudaBackEnd(self.model, self.weights, self.cache)

    def refusal(self) -> Refusal:
        refusal = self.back_end.refuse()
        assert refusal is not None
        return refusal


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    toy_arms.install(monkeypatch)
    made = Hosted()
    yield made
    made.back_end.close()


def step(**changes: Any) -> StepRows:
    """Rows of two requests, one with two rows across a page, and a pad behind them."""
    numbers: dict[str, Any] = {
        "batch_ids": np.array([0, 1, 1, -1], dtype=np.int32),
        "positions": np.array([5, 127, 128, 0], dtype=np.int64),
        "slots": np.array([2 * BLOCK + 5, 4 * BLOCK + 127, 1 * BLOCK, 0], dtype=np.int64),
        "pages": np.array([[2, 0], [4, 1], [4, 1], [0, 0]], dtype=np.int32),
        "requests": 2,
    }
    return StepRows(**(numbers | changes))


def streams(rows: int = 4) -> tuple[Tensor, Tensor]:
    given = torch.arange(rows * HIDDEN).view(rows, HIDDEN) / 64.0
    return given, torch.full_like(given, torch.nan)


def facts(**changes: Any) -> Deployment:
    formats = {"projections": "fp8", "experts": "mxfp4", "router": "bf16", "kv_cache": "fp8"}
    sizes = {"layers": 2, "context": 1000, "reach": SHAPE.reach, "cache_pages": PAGES}
    more = {"device": "cuda", "index_cache": "fp8", "block": BLOCK, "selection_block": BLOCK}
    return Deployment(**{**formats, **sizes, **more, **changes})


def test_it_is_a_back_end_of_the_library_and_serves_behind_it(hosted: Hosted) -> None:
    as_asked: BackEnd = hosted.back_end
    mono = Mono.bind(facts(), hosted.back_end.kinds, as_asked, widths=(1, WIDTH))
    assert isinstance(mono, Mono), mono
    assert mono.prepare_step(step()) is None
    (given, out), turned = streams(), np.cos(np.array([5.0, 127.0, 128.0])).astype(np.float32)
    mono.forward_layer(1, given, out)
    assert torch.equal(out[:3], 2 * given[:3] + torch.from_numpy(turned)[:, None])
    assert not out[3].any()
    assert hosted.back_end.routing(1).shape == (4, 4)
    assert hosted.back_end.routing(1)[3].tolist() == [-1] * 4
    (told,) = ToyArms.launches
    assert told == ("mono", WIDTH, given.data_ptr(), out.data_ptr())
    mono.close()


def test_a_narrower_step_goes_through_the_builds_own_streams(hosted: Hosted) -> None:
    assert hosted.back_end.build(WIDTH) is None
    cut = {n: getattr(step(), n)[:2] for n in ("batch_ids", "positions", "slots", "pages")}
    hosted.back_end.prepare(StepRows(**cut, requests=2), WIDTH)
    given, out = streams(2)
    hosted.back_end.run_unfused(0, given, out)
    arm, rows, stream_in, stream_out = ToyArms.launches[0]
    assert (arm, rows) == ("unfused", WIDTH)
    assert stream_in != given.data_ptr()
    assert stream_out != out.data_ptr()
    assert torch.isfinite(out).all()
    hosted.back_end.run(1, given, given)  # in place
    assert torch.equal(given, out)


def test_addresses_never_change_and_scratch_is_what_it_is_filled_with(hosted: Hosted) -> None:
    assert hosted.back_end.build(WIDTH) is None
    build = hosted.back_end._builds[WIDTH]
    before = bytes(build._args[0])
    hosted.back_end.fill_scratch(255)
    for _ in range(2):
        hosted.back_end.prepare(step(), WIDTH)
    assert bytes(build._args[0]) == before
    args = build._args[1]
    assert np.isnan(at(args.mid, np.float32, WIDTH * HIDDEN)).all()
    kept = (args.barrier, args.give_up, args.merge_counts)
    assert not any(at(word, np.int32, 1)[0] for word in kept), "hand-offs count on"
    assert args.routing != build._args[0].routing


def test_two_builds_share_one_record(hosted: Hosted) -> None:
    assert hosted.back_end.build(1) is hosted.back_end.build(WIDTH) is None
    records = {build._args[0].give_up for build in hosted.back_end._builds.values()}
    assert len(records) == 1


def test_a_device_is_not_waited_for_when_the_host_says_the_last_position(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hosted.back_end.build(WIDTH) is None
    names = ("batch_ids", "positions", "slots", "pages")
    there = {name: DeviceArray(torch.from_numpy(getattr(step(), name))) for name in names}
    monkeypatch.setattr(Tensor, "cpu", lambda _: pytest.fail("a wait for the device"))
    hosted.back_end.prepare(StepRows(**there, last=128), WIDTH)
    hosted.back_end.run(0, *streams())


def test_arrays_of_a_device_are_described_as_numpys_are() -> None:
    tensor = torch.zeros((3, 5), dtype=torch.int32)[:, :2]
    array = DeviceArray(tensor)
    wanted = tensor.numpy()
    assert (array.dtype, array.shape, array.strides) == ("int32", wanted.shape, wanted.strides)
    assert array[:2].tolist() == wanted[:2].tolist()
    assert len(array) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positions": np.array([5, 127, SHAPE.reach, 0])}, "beyond the build's 131072"),
        ({"positions": np.array([5, 127, 256, 0])}, "beyond its row's pages"),
        ({"slots": np.array([5, PAGES * BLOCK, 0, 0])}, "a slot is outside of the cache's 768"),
        ({"pages": np.array([[2, 0], [4, 6], [4, 6], [0, 0]], np.int32)}, "outside of the cache"),
        ({"pages": np.array([[-1, 0], [4, 1], [4, 1], [0, 0]], np.int32)}, "outside of the cache"),
        ({"pages": np.array([[2, 0], [4, 1], [3, 1], [0, 0]], np.int32)}, "have other pages"),
        # Scores of the third row read what the second, the request's first, has for its page.
        ({"pages": np.array([[2, 0], [4, 5], [4, 1], [0, 0]], np.int32)}, "have other pages"),
        ({"batch_ids": np.array([1, 0, 1, -1], np.int32)}, "do not stand together"),
        ({"last": SHAPE.reach}, "last position 131072 is beyond the build's 131072"),
    ],
)
def test_numbers_that_kernels_would_look_up_elsewhere_change_nothing(
    hosted: Hosted, changes: dict[str, Any], said: str
) -> None:
    assert hosted.back_end.build(WIDTH) is None
    buffers = hosted.back_end._builds[WIDTH]._step.tensors
    before = {name: tensor.clone() for name, tensor in buffers.items()}
    with pytest.raises(ValueError, match=said):
        hosted.back_end.prepare(step(**changes), WIDTH)
    assert all(torch.equal(before[name], tensor) for name, tensor in buffers.items())


def test_pages_that_no_row_reaches_are_not_looked_at(hosted: Hosted) -> None:
    assert hosted.back_end.build(WIDTH) is None
    pages = np.array([[2, 99], [4, 1], [4, 1], [-9, 99]], np.int32)
    hosted.back_end.prepare(step(pages=pages), WIDTH)


@pytest.mark.parametrize("change", ["rows", "type", "strides"])
def test_a_stream_of_another_form_is_refused(hosted: Hosted, change: str) -> None:
    assert hosted.back_end.build(WIDTH) is None
    hosted.back_end.prepare(step(), WIDTH)
    given, out = streams()
    odd = {"rows": out[:3], "type": out.double(), "strides": out.T.contiguous().T}[change]
    with pytest.raises(ValueError, match=r"expected float32 \[4, 6144\]"):
        hosted.back_end.run(0, given, odd)
    assert not ToyArms.launches


def test_weights_that_do_not_fit_are_refused_by_name(hosted: Hosted) -> None:
    weights = hosted.weights[1]
    for name, tensor, code, said in (
        ("up", weights["up"][:128], "mono-weights", "up of layer 1.*129, 16, 96, 3200"),
        ("qkv_scale", weights["qkv_scale"].half(), "mono-weights", "qkv_scale.*float16"),
        ("o", weights["o"].permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2), "mono-strides",
         "o of layer 1"),
        ("router_bias", torch.empty(129)[1:], "mono-alignment", "multiple of 16"),
        ("down", torch.empty(weights["down"].shape, dtype=torch.uint8, device="meta"),
         "mono-residency", "lies on meta: expected cpu"),
    ):  # fmt: skip
        hosted.back_end = CudaBackEnd(
            hosted.model, [hosted.weights[0], {**weights, name: tensor}], hosted.cache
        )
        refusal = hosted.refusal()
        assert refusal.code == code, refusal
        assert re.search(said, refusal.sentence), refusal
    missing = {name: tensor for name, tensor in weights.items() if name != "o_scale"}
    hosted.back_end = CudaBackEnd(hosted.model, [hosted.weights[0], missing], hosted.cache)
    assert "o_scale of layer 1 is missing" in hosted.refusal().sentence
    hosted.back_end = CudaBackEnd(hosted.model, [missing], hosted.cache)
    assert str(hosted.refusal()) == (
        "mono-layer-count: 1 layers of weights: expected 2, the model's"
    )


def test_what_is_no_weight_is_not_handed_on(hosted: Hosted) -> None:
    more = {**hosted.weights[0], "mid": torch.empty(1)}  # kernels would write there
    made = CudaBackEnd(hosted.model, [more, more], hosted.cache)
    assert made.build(WIDTH) is None
    assert made._builds[WIDTH]._args[0].mid != more["mid"].data_ptr()


def test_caches_that_do_not_fit_are_refused(hosted: Hosted) -> None:
    fp32 = KvCache.empty(hosted.model, 2)
    hosted.back_end = CudaBackEnd(hosted.model, hosted.weights, fp32)
    assert hosted.refusal().code == "mono-cache"
    assert "fp32 keys" in hosted.refusal().sentence
    one = KvCache.empty(few_layers(1), 2, kinds=FP8)
    hosted.back_end = CudaBackEnd(hosted.model, hosted.weights, one)
    assert "layer 1 has (0, 0) bytes" in hosted.refusal().sentence


def test_a_cache_of_the_host_is_refused(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_end, "DEVICE", "cuda")
    refusal = hosted.refusal()
    assert refusal.code == "mono-residency"
    assert "the cache lies on cpu: expected a cuda device" in refusal.sentence


def test_layers_of_another_shape_are_refused(hosted: Hosted) -> None:
    model = mini(num_layers=2, aux_layers=(0, 0, 1), block_layers=(0,))
    hosted.back_end = CudaBackEnd(model, hosted.weights, KvCache.empty(model, 2, kinds=FP8))
    assert hosted.refusal().code == "mono-shape"
    longer = replace(hosted.model, rope_theta=1e6)
    hosted.back_end = CudaBackEnd(longer, hosted.weights, hosted.cache)
    assert str(hosted.refusal()) == (
        "mono-shape: layers with rope_theta 1000000.0 (expected 5000000.0): the CUDA kernels are"
        " built for m3_tp4_rank"
    )
    assert hosted.back_end.build(WIDTH) == hosted.refusal()


def test_a_shared_gpu_is_refused_to_mono_and_unfused_layers_serve(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Refusal("mono-residency", "1 other processes compute on NVIDIA H200")
    asked: list[tuple[int, int]] = []

    def refuse(*of: int, compiled: bool) -> Refusal:
        assert compiled  # of toys there is nothing to compile
        asked.append(of)
        return shared

    monkeypatch.setattr(back_end, "cuda_refusal", refuse)
    assert Mono.bind(facts(), hosted.back_end.kinds, hosted.back_end) == shared
    ((needed, number),) = asked
    assert needed > SHAPE.reach * SHAPE.rotary_dim * 4
    assert number == 0
    assert hosted.back_end.build(WIDTH) is None
    hosted.back_end.prepare(step(), WIDTH)
    given, out = streams()
    hosted.back_end.run_unfused(0, given, out)
    assert torch.isfinite(out).all()
    assert [arm for arm, *_ in ToyArms.launches] == ["unfused"]


def test_a_machine_needs_a_compiler_for_what_is_not_on_disk(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found: list[bool] = []
    monkeypatch.setattr(back_end, "Arms", Arms)
    monkeypatch.setattr(
        back_end, "cuda_refusal", lambda *_, compiled: found.append(compiled) or None
    )
    hosted_here = CudaBackEnd(hosted.model, [], hosted.cache, tmp_path)
    hosted_here.refuse()
    for width in back_end.WIDTHS:
        for source in hosted_here._arms(width).sources:
            (tmp_path / f"{source.key}.cubin").touch()
    hosted_here.refuse()
    assert found == [False, True]


def test_of_several_faults_the_shape_is_said_then_the_machine_then_what_is_borrowed(
    hosted: Hosted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_end, "cuda_refusal", lambda *_, **__: Refusal("mono-device", "none"))
    longer = replace(hosted.model, rope_theta=1e6)
    found = [CudaBackEnd(model, [], hosted.cache).refuse() for model in (longer, hosted.model)]
    assert [refusal and refusal.code for refusal in found] == ["mono-shape", "mono-device"]
    built = CudaBackEnd(hosted.model, [], hosted.cache).build(WIDTH)
    assert built is not None
    assert built.code == "mono-layer-count"


def test_what_was_borrowed_is_let_go(hosted: Hosted) -> None:
    assert hosted.back_end.build(WIDTH) is None
    weight, cache = (weakref.ref(held) for held in (hosted.weights[0]["up"], hosted.cache.features))
    for _ in range(2):
        hosted.back_end.close()
    assert hosted.refusal().code == "mono-layer-count"
    hosted.weights.clear()
    del hosted.cache
    assert weight() is cache() is None


def test_layers_that_are_not_sparse_stay_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    toy_arms.install(monkeypatch)
    model = replace(few_layers(2), full_layers=1, dense_layers=1)
    cache = KvCache.empty(model, PAGES, kinds=FP8)
    made = CudaBackEnd(model, [{}, toy_arms.unwritten_weights()], cache)
    mono = Mono.bind(facts(full_layers=1, dense_layers=1), made.kinds, made)
    assert isinstance(mono, Mono), mono
    assert [mono.serves(layer) for layer in range(2)] == [False, True]


@pytest.mark.parametrize("kind", ["bf16", "fp8", "mxfp4"])
def test_pages_of_infx_lie_as_kernels_read_them(kind: str) -> None:
    """`Store` is what the emulated kernels read and write."""
    slots, draw = torch.tensor([3, 130, 700, 767]), torch.Generator().manual_seed(1)
    keys, values, index = torch.randn(3, len(slots), 128, generator=draw)
    model = few_layers(2)
    cache = KvCache.empty(model, PAGES, kinds=Kinds(kind, kind))
    cache.write(1, slots, keys[:, None], values[:, None])
    cache.write_index(1, slots, index)
    fields = cache_fields(cache, 1)
    stores = {
        ("keys", "key_scales"): (keys, True),
        ("values", "value_scales"): (values, True),
        ("index_keys", "index_scales"): (index, False),
    }
    for names, (vectors, scaled) in stores.items():
        store = Store.unwritten(kind, scaled, PAGES, "cpu")
        for part in store.parts():
            part.zero_()
        store.write(slots, vectors)
        assert [name in fields for name in names] == [True, len(store.parts()) == 2]
        for name, part in zip(names, store.parts(), strict=False):
            wanted = part.contiguous().view(torch.uint8).flatten().numpy()
            assert np.array_equal(at(fields[name], np.uint8, len(wanted)), wanted), name


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        (3, r"block 77 waited too long for the others behind stage attention .*0x80000083"),
        (7, r"block 77 waited too long for a score .*0x80000083"),
        (8, r"block 77 waited too long for a logit of the router .*0x80000083"),
        (9, r"block 77 waited too long for an expert's numbers .*0x80000083"),
        (1 + len(WAITS), rf"block 77 waited too long for number {1 + len(WAITS)} "),
    ],
)
def test_a_wait_that_gave_up_is_heard_of(hosted: Hosted, wait: int, told: str) -> None:
    assert hosted.back_end.build(WIDTH) is None
    hosted.back_end.prepare(step(), WIDTH)
    hosted.back_end.settle()
    words = at(hosted.back_end._builds[WIDTH]._args[0].give_up, np.int32, 4)
    words[:] = (1, wait, 77, -2147483517)
    with pytest.raises(InfraError, match=told) as raised:
        hosted.back_end.settle()
    assert raised.value.code == "kernel-gave-up"
    hosted.back_end.prepare(step(), WIDTH)  # the record is on its way
    with pytest.raises(InfraError, match=told):
        hosted.back_end.prepare(step(), WIDTH)


def test_builds_are_told_the_kinds_of_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    toy_arms.install(monkeypatch)
    arms = Hosted(Kinds("mxfp4", "bf16")).back_end._arms(2)
    assert isinstance(arms, ToyArms)
    assert (arms.rows, arms.defines) == (2, {"KV_KIND": 2, "INDEX_KIND": 0})
    text = (KERNELS / "attn_cache.cuh").read_text()
    assert "enum CacheKind { BF16 = 0, FP8 = 1, MXFP4 = 2 };" in text
    assert DEVICES["cuda"].caches == KINDS == ("bf16", "fp8", "mxfp4")
    assert {source.name for source in Arms(2).sources} == {"mono", "unfused", "attn"}
