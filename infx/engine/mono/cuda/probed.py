"""Random layers of m3_tp4_rank on a GPU as the probe and the check want them.

Weights are drawn on the device as kernels read them (`random_layer`): quantising 4 GB of float32
numbers a layer would take minutes. That an expert was read in vain cannot be told on a GPU, so
`Ran.read` is None; an expert whose NaN is used shows up in the rows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from infx.domain.errors import EngineError
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.config import EngineConfig
from infx.engine.mono.cpu.kinds import kinds_of
from infx.engine.mono.cuda.back_end import WIDTHS, CudaBackEnd, built_shape
from infx.engine.mono.cuda.pack import unpacked_layer
from infx.engine.mono.cuda.random_layer import make_weights
from infx.engine.mono.probe.arms import Reference, Run, Three
from infx.engine.mono.probe.host import Host
from infx.engine.mono.probe.mono_check import MonoCheck
from infx.engine.mono.probe.rows import Arm, Numbers
from infx.engine.mono.probe.serving import Decode
from infx.engine.mono.probe.world import World
from infx.engine.mono.shape import MOST_ROWS
from infx.engine.mono.step import StepRows
from infx.engine.shapes import ModelConfig, m3_tp4_rank
from infx.engine.weights import seed_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OnDevice", "decodes", "device_check", "device_host", "few_layers"]

# Pages of a check's cache: 16 requests of up to 320 pages, 40,960 tokens, each. Of more than 128
# pages kernels choose blocks in two rounds. 0.26 GB a layer.
MOST_PAGES = 320
CHECKED_PAGES = MOST_ROWS * MOST_PAGES
SLOTS_AT_ONCE = 1 << 15
GPU = "cuda:0"


def few_layers(count: int) -> ModelConfig:
    """Return ``count`` sparse layers of one TP4 rank."""
    return replace(
        m3_tp4_rank(),
        num_layers=count,
        full_layers=0,
        dense_layers=0,
        router_dtype="bf16",
        aux_layers=(0, 0, 0),
        block_layers=(0,),
    )


class OnDevice:
    """Both arms of a back end for rows that lie on the host; ``widths`` are its builds.

    Raises EngineError with the code of what the back end refuses, InfraError where it cannot build.
    """

    def __init__(
        self,
        back_end: CudaBackEnd,
        layers: Sequence[Mapping[str, Tensor]],
        widths: Collection[int],
    ) -> None:
        self._back_end, self._layers, self._widths = back_end, layers, sorted(widths)
        if refusal := back_end.refuse():
            raise EngineError(refusal.code, refusal.sentence)
        back_end.compile(self._widths)
        for width in self._widths:
            if refusal := back_end.build(width):
                raise EngineError(refusal.code, refusal.sentence)

    def prepare(self, step: StepRows) -> None:
        """Take a step, for the narrowest build that holds it."""
        self._back_end.prepare(step, self._width(step.rows))

    def _width(self, rows: int) -> int:
        return next(width for width in self._widths if width >= rows)

    def running(self, arm: Arm) -> Run:
        """Return what runs a layer of the prepared step: (layer, stream [rows, hidden], out)."""

        def run(layer: int, stream: Numbers, out: Numbers) -> None:
            given, made = (torch.from_numpy(x).to(self._back_end.device) for x in (stream, out))
            self._launch(arm, layer, given, made)
            self._back_end.settle()
            out[:] = made.cpu().numpy()

        return run

    def _launch(self, arm: Arm, layer: int, given: Tensor, made: Tensor) -> None:
        run = self._back_end.run if arm == "mono" else self._back_end.run_unfused
        run(layer, given, made)

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the experts [rows, topk] that the step's rows chose in ``layer``."""
        return self._back_end.routing(layer)

    def fill_scratch(self, nothing: int) -> None:
        """Fill all memory between stages with bytes ``nothing``."""
        self._back_end.fill_scratch(nothing)

    def experts(self, layer: int, chosen: Collection[int]) -> list[Tensor]:
        """Return views of the packed weights of ``chosen`` experts."""
        names = ("up", "down")
        return [self._layers[layer][name][expert] for name in names for expert in chosen]


def device_host(
    config: EngineConfig,
    layers: int,
    arm: Arm,
    widths: Collection[int],
    running: type[OnDevice] = OnDevice,
) -> Host:
    """Return ``layers`` random layers, with builds of ``widths``, of one row and of the widest.

    Types of caches and the seed are those of ``config``; ``running`` is what launches the layers.
    """
    model, weights = few_layers(layers), _drawn(config, layers)
    shape, kinds = built_shape(model), kinds_of(model)
    cache = _cache(model, World(shape, 0).pages, config.cache_kinds)
    if arm == "reference":
        return Host(arm, shape, kinds, _reference(model, weights, cache), cache)
    hosted = running(CudaBackEnd(model, weights, cache), weights, {1, *widths, MOST_ROWS})
    return Host(arm, shape, kinds, hosted, cache)


def device_check(config: EngineConfig, layers: int, steps: int) -> MonoCheck:
    """Return a check of ``layers`` random layers, for the steps of `decodes` over their cache."""
    model, weights = few_layers(layers), _drawn(config, layers)

    def make(cache: KvCache) -> Three:
        hosted = OnDevice(CudaBackEnd(model, weights, cache), weights, WIDTHS)
        return Three(hosted, _reference(model, weights, cache))

    return MonoCheck(layers, make, steps)


def _drawn(config: EngineConfig, layers: int) -> list[dict[str, Tensor]]:
    seed = seed_of(config.weights) or 0
    return [make_weights(seed + number, GPU) for number in range(layers)]


def decodes(config: EngineConfig, layers: int) -> Iterator[Decode]:
    """Yield decode steps of random requests, pads among them, over one cache of random tokens.

    Contexts go up to 40,960 tokens, short ones as often as long ones; streams are random.
    """
    model, seed, each = few_layers(layers), seed_of(config.weights) or 0, config.rows_per_request
    cache = _cache(model, CHECKED_PAGES, config.cache_kinds)
    _fill(cache, layers, seed)
    draw, numbers = random.Random(seed), torch.Generator().manual_seed(seed)
    while True:
        spans = _spans(draw, draw.randint(1, MOST_ROWS // each), each, model.block_size)
        rows = sum(len(span.tokens) for span in spans)
        width = draw.randint(rows, MOST_ROWS)
        yield Decode(
            batch=make_batch(spans, model.block_size, width),
            drafts=(),
            cache=cache,
            embed=torch.randn(MOST_ROWS, model.hidden_size, generator=numbers),
            head=lambda stream: stream,
            vocabulary=0,
        )


def _spans(draw: random.Random, requests: int, rows: int, block: int) -> list[Span]:
    """Return requests of ``rows`` rows on pages that no other has; tokens number the rows."""
    pages, spans = draw.sample(range(CHECKED_PAGES), CHECKED_PAGES), []
    for number in range(requests):
        held = int(2 ** draw.uniform(0, math.log2(MOST_PAGES)))
        start = draw.randint(max(0, (held - 1) * block - rows), held * block - rows)
        own = pages[number * MOST_PAGES :][:held]
        spans.append(Span([number * rows + row for row in range(rows)], start, own))
    return spans


def _cache(model: ModelConfig, pages: int, kinds: Kinds) -> KvCache:
    with torch.device(GPU):
        return KvCache.empty(model, pages, kinds=kinds)


def _fill(cache: KvCache, layers: int, seed: int) -> None:
    draw = torch.Generator(GPU).manual_seed(seed)
    for layer in range(layers):
        for first in range(0, cache.slots, SLOTS_AT_ONCE):
            slots = torch.arange(first, min(cache.slots, first + SLOTS_AT_ONCE), device=GPU)
            size = (3, len(slots), 1, m3_tp4_rank().head_dim)
            keys, values, index = torch.randn(size, generator=draw, device=GPU)
            cache.write(layer, slots, keys, values)
            cache.write_index(layer, slots, index[:, 0])


def _reference(
    model: ModelConfig, layers: Sequence[Mapping[str, Tensor]], cache: KvCache
) -> Reference:
    """Return plain torch over the float32 numbers that the packed weights stand for."""
    weights = {name: torch.empty(0, device=GPU) for name in ("embed", "norm", "head")}
    for number, packed in enumerate(layers):
        weights |= {f"layers.{number}.{name}": w for name, w in unpacked_layer(packed).items()}
    return Reference(model, weights, cache)
