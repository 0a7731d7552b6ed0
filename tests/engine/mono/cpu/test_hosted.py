"""The real back end behind the boundary: what is refused, and who serves it then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.config import EngineConfig
from infx.engine.deployment import deployment
from infx.engine.mono.cpu.back_end import CpuBackEnd, packed_layers
from infx.engine.mono.dispatch import Deployment
from infx.engine.mono.library import Mono, StepRows
from infx.engine.mono.refusal import Refusal
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.mono.cpu.test_back_end import LAYERS, WIDTH, rows_of, verify_step

PAGES = 14


class Hosted:
    """Mini's layers over a cache of noise, bound; ``step`` is a verify step with pads."""

    def __init__(self) -> None:
        model = mini()
        self.cache = KvCache.empty(model, PAGES)
        generator = torch.Generator().manual_seed(1)
        for part in self.parts:
            part.copy_(torch.randn(part.shape, generator=generator))
        layers = packed_layers(model, target_weights(model, "random:7"))
        self.back_end = CpuBackEnd(model, layers, self.cache)
        mono = Mono.bind(facts(), self.back_end.kinds, self.back_end, widths=(WIDTH,))
        assert isinstance(mono, Mono)
        self.mono, self.step = mono, rows_of(verify_step())
        shape = (self.step.rows, model.hidden_size)
        self.stream = torch.randn(shape, generator=generator).numpy()

    @property
    def parts(self) -> list[torch.Tensor]:
        return [part for n in LAYERS for parts in self.cache.layer_parts(n) for part in parts]

    def kept(self) -> list[bytes]:
        return [part.numpy().tobytes() for part in self.parts]

    def served(self, run: Any) -> tuple[bytes, list[bytes]]:
        """What all layers make of the prepared step's rows by ``run``; the cache is put back."""
        before = [part.clone() for part in self.parts]
        stream = self.stream
        for layer in LAYERS:
            out = np.full_like(stream, np.nan)
            run(layer, stream, out)
            stream = out
        kept = self.kept()
        for part, was in zip(self.parts, before, strict=True):
            part.copy_(was)
        return stream.tobytes(), kept


def facts(**changes: Any) -> Deployment:
    config = EngineConfig(num_blocks=PAGES, max_model_len=128)
    return replace(deployment(config), **changes)


@pytest.fixture(scope="module")
def hosted(mini_builds: None) -> Iterator[Hosted]:
    made = Hosted()
    yield made
    made.mono.close()
    made.back_end.close()


def strided(array: Any) -> Any:
    """The same numbers, each behind one that nobody asked for."""
    return np.repeat(array, 2, axis=array.ndim - 1)[..., ::2]


def with_pages(step: StepRows, row: int, page: int) -> StepRows:
    pages = np.array(step.pages)
    pages[row, 0] = page
    return replace(step, pages=pages)


STEP = rows_of(verify_step())
WIDE = verify_step(17)
BAD = {
    "mono-batch-ids-missing": replace(STEP, batch_ids=None),
    "mono-batch-ids-dtype": replace(STEP, batch_ids=np.asarray(STEP.batch_ids).astype(np.int64)),
    "mono-batch-ids-few": replace(STEP, batch_ids=np.asarray(STEP.batch_ids)[:-1]),
    "mono-batch-ids-range": replace(STEP, requests=2),
    "mono-too-many-rows": rows_of(WIDE),
    "mono-prefill": replace(STEP, prefill=True),
    "mono-step-dtype": replace(STEP, slots=np.asarray(STEP.slots).astype(np.int32)),
    "mono-step-strides": replace(STEP, pages=strided(STEP.pages)),
    "mono-step-rank": replace(STEP, pages=np.asarray(STEP.pages).ravel()),
    "mono-step-few": replace(STEP, slots=np.asarray(STEP.slots)[:-1]),
    "mono-row-beyond-context": replace(STEP, positions=np.asarray(STEP.positions) + 8200),
    "mono-page-table-short": replace(STEP, pages=np.asarray(STEP.pages)[:, :2].copy()),
    "mono-slot-outside": replace(STEP, slots=np.asarray(STEP.slots) + 16 * PAGES),
}
NUMBERS = {
    "a page outside": with_pages(STEP, 0, PAGES),
    "a page below 0": with_pages(STEP, 0, -1),
    # Row 0 leads its request, so it reads for row 3 too.
    "other pages in one request": with_pages(STEP, 3, 5),
}
CASES = [*BAD.items(), *(("mono-step-numbers", step) for step in NUMBERS.values())]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("code", "bad"), CASES, ids=[*BAD, *NUMBERS])
def test_a_refused_step_is_served_by_the_unfused_layers(
    code: str, bad: StepRows, hosted: Hosted
) -> None:
    back_end, mono = hosted.back_end, hosted.mono
    assert mono.prepare_step(hosted.step) is None
    wanted = hosted.served(mono.forward_layer)
    before, counted = hosted.kept(), mono.coverage.snapshot()

    refusal = mono.prepare_step(bad)
    assert refusal is not None
    assert (refusal.code, refusal.level) == (code, "step")
    out = np.full_like(hosted.stream, np.nan)
    with pytest.raises(RuntimeError, match="a step that prepare_step took"):
        mono.forward_layer(1, hosted.stream, out)
    assert np.isnan(out).all()
    assert hosted.kept() == before, "nothing is written"
    assert mono.coverage.snapshot().mono == counted.mono

    back_end.prepare(hosted.step, WIDTH)
    assert hosted.served(back_end.run_unfused) == wanted
    assert mono.prepare_step(hosted.step) is None
    assert hosted.served(mono.forward_layer) == wanted


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_unfused_step_of_other_types_is_refused_too(hosted: Hosted) -> None:
    slots = np.asarray(STEP.slots)
    for wrong in (slots.astype(np.int32), strided(slots), slots.reshape(-1, 1)):
        with pytest.raises(ValueError, match="expected int32, int64, int64 of one dimension"):
            hosted.back_end.prepare(replace(STEP, slots=wrong), WIDTH)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_any_negative_id_is_a_pad(hosted: Hosted) -> None:
    ids = np.where(np.asarray(STEP.batch_ids) < 0, np.int32(-1), np.int32(-7))
    hosted.back_end.prepare(replace(STEP, batch_ids=ids.astype(np.int32)), WIDTH)
    before = hosted.kept()
    out, kept = hosted.served(hosted.back_end.run)
    assert not any(out)
    assert kept == before


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("poison", [0x00, 0xFF])
def test_what_stood_in_scratch_changes_nothing(poison: int, hosted: Hosted) -> None:
    hosted.back_end.prepare(hosted.step, WIDTH)
    wanted = hosted.served(hosted.back_end.run)
    hosted.back_end.fill_scratch(poison)
    assert hosted.served(hosted.back_end.run) == wanted
    hosted.back_end.fill_scratch(poison)
    assert hosted.served(hosted.back_end.run_unfused) == wanted


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("mono-projections", {"projections": "fp8"}),
        ("mono-experts", {"experts": "nvfp4"}),
        ("mono-router", {"router": "fp8"}),
        ("mono-kv-cache", {"kv_cache": "int8"}),
        ("mono-block-size", {"block": 32}),
        ("mono-shared-expert", {"shared_size": 48}),
    ],
)
def test_a_deployment_that_is_not_monos_is_refused(code: str, changes: dict[str, Any]) -> None:
    model = mini()
    layers = packed_layers(model, target_weights(model, "random:7"))
    back_end = CpuBackEnd(model, layers, KvCache.empty(model, PAGES))
    refusal = Mono.bind(facts(**changes), back_end.kinds, back_end)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.level) == (code, "config")


def test_a_cache_of_another_model_is_not_run_over() -> None:
    model = mini()
    layers = packed_layers(model, target_weights(model, "random:7"))
    others = {
        "fewer layers": mini(num_layers=3, aux_layers=(0, 1, 2), block_layers=(0,)),
        "fewer heads": mini(kv_heads=1),
        "narrower heads": mini(head_dim=16),
        "no index keys": mini(full_layers=5, dense_layers=5),
    }
    for name, other in others.items():
        back_end = CpuBackEnd(model, layers, KvCache.empty(other, PAGES))
        refusal = back_end.build(WIDTH)
        assert refusal is not None, name
        assert refusal.code == "mono-cache"
    small = CpuBackEnd(model, layers, KvCache.empty(model, PAGES, kinds=Kinds("mxfp4", "bf16")))
    assert small.refuse() is None


def test_closing_twice_is_closing_once() -> None:
    model = mini()
    layers = packed_layers(model, target_weights(model, "random:7"))
    back_end = CpuBackEnd(model, layers, KvCache.empty(model, PAGES))
    back_end.close()
    back_end.close()
    refusal = back_end.build(WIDTH)
    assert refusal is not None
    assert refusal.code == "mono-layer-count"
