"""The interpreter and the reference model in torch: one layer of each kind, the same step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.model.reference import ReferenceModel
from infx.engine.mono.interpret import run
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import CPU_GRAIN, GPU_GRAIN, SHAPES, Caches, Grain, Kind, LayerShape
from infx.engine.mono.task import PagedCache, Step
from infx.engine.mono.weights import Weights
from infx.engine.shapes import ModelConfig, mini, mini_3_1
from infx.engine.weights import target_weights
from tests.engine.mono.tiny_layers import FINE, MACHINE, TINY

CONTEXTS = (13, 2, 0)
VERIFY = (3, 1, 2)


def config(shape: LayerShape) -> ModelConfig:
    """Return a model whose layers are dense, sparse_dense, sparse, of ``shape``."""
    return mini(
        name="tiny",
        hidden_size=shape.hidden,
        num_layers=3,
        full_layers=1,
        dense_layers=2,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        rotary_dim=shape.rotary_dim,
        block_size=shape.block,
        topk_blocks=shape.topk_blocks,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        expert_size=shape.expert_size,
        shared_size=shape.expert_size,
        dense_size=shape.dense_size,
        vocab_size=320,
        max_positions=shape.reach,
        aux_layers=(0, 1, 2),
        block_layers=(0, 1, 2),
        simulated_ranks=shape.ranks,
    )


def spans(draw: random.Random, starts: tuple[int, ...], counts: tuple[int, ...]) -> list[Span]:
    own = (range(i * TINY.pages, (i + 1) * TINY.pages) for i in range(len(starts)))
    return [
        Span([draw.randrange(320) for _ in range(count)], start, tuple(pages))
        for start, count, pages in zip(starts, counts, own, strict=True)
        if count
    ]


class Oracle:
    """A model's layers, each with its own cache, run by the interpreter."""

    def __init__(
        self,
        model: ModelConfig,
        weights: dict[str, torch.Tensor],
        caches: Caches,
        shape: LayerShape,
        grain: Grain,
    ) -> None:
        self.embed, self.caches, self.shape, self.grain = weights["embed"], caches, shape, grain
        self.layers: list[tuple[Kind, dict[str, Any], PagedCache]] = []
        for number in range(model.num_layers):
            prefix = f"layers.{number}."
            named = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
            own = {name: tensor.tolist() for name, tensor in named.items()}
            self.layers.append((kind_of(model, number), own, PagedCache(caches)))

    def forward(self, step_spans: list[Span], width: int) -> list[torch.Tensor]:
        """Return the stream after each layer."""
        tokens = [token for span in step_spans for token in span.tokens]
        pads = width - len(tokens)
        poison = [[math.nan] * self.shape.hidden] * pads
        stream: Sequence[Sequence[float]] = [*self.embed[tokens].tolist(), *poison]
        step, after = self._step(step_spans, pads), []
        for kind, weights, cache in self.layers:
            made = make_table(self.shape, kind, width, MACHINE, self.grain, self.caches)
            stream = run(made, Weights(made, weights), cache, step, stream).stream
            after.append(torch.tensor([list(row) for row in stream])[: len(tokens)])
        return after

    def _step(self, step_spans: list[Span], pads: int) -> Step:
        block = self.shape.block
        rows = [
            (number, span.start + i, tuple(span.pages))
            for number, span in enumerate(step_spans)
            for i in range(len(span.tokens))
        ]
        return Step(
            batch_ids=(*(number for number, _, _ in rows), *[-1] * pads),
            positions=(*(at for _, at, _ in rows), *[0] * pads),
            slots=(
                *(pages[at // block] * block + at % block for _, at, pages in rows),
                *[0] * pads,
            ),
            pages=(*(pages for _, _, pages in rows), *[()] * pads),
        )


def kind_of(model: ModelConfig, layer: int) -> Kind:
    if model.has_experts(layer):
        return "sparse"
    return "sparse_dense" if model.attends_sparsely(layer) else "dense"


# Seeds at which no number of a cache lies so near the middle of two codes that one ulp decides.
@pytest.mark.parametrize(
    ("kv", "index", "ranks", "seed"),
    [
        ("fp32", "fp32", 1, 1),
        pytest.param("bf16", "fp8", 1, 1, marks=pytest.mark.slow),
        pytest.param("fp8", "bf16", 1, 1, marks=pytest.mark.slow),
        pytest.param("mxfp4", "mxfp4", 2, 1, marks=pytest.mark.slow),
    ],
)
def test_layers_agree_with_the_reference(kv: str, index: str, ranks: int, seed: int) -> None:
    torch.set_num_threads(1)
    # MXFP4 has groups of 32.
    shape = replace(TINY, ranks=ranks, head_dim=32 if kv == "mxfp4" else TINY.head_dim)
    draw = random.Random(seed)
    weights = target_weights(config(shape), f"random:{seed}")
    model = ReferenceModel(config(shape), weights)
    cache = KvCache.empty(config(shape), 3 * shape.pages, kinds=Kinds(kv, index))
    oracle = Oracle(config(shape), weights, Caches(kv, index), shape, FINE)
    # Prompts first, then verify rows of all three; always a pad after them.
    for starts, counts in (((0, 0, 0), (13, 2, 0)), (CONTEXTS, VERIFY)):
        step = spans(draw, starts, counts)
        batch = make_batch(step, shape.block)
        _, aux = model.forward(batch, cache)
        after = oracle.forward(step, batch.rows + 1)
        for ours, theirs in zip(after, aux.split(shape.hidden, dim=1), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("grain", [CPU_GRAIN, GPU_GRAIN], ids=["cpu", "gpu"])
@pytest.mark.parametrize("make", [mini, mini_3_1])
def test_mini_agrees_with_the_reference(make: Callable[[], ModelConfig], grain: Grain) -> None:
    torch.set_num_threads(1)
    model, shape, draw = make(), SHAPES["mini"], random.Random(7)
    weights = target_weights(model, "random:7")
    cache = KvCache.empty(model, 6)
    oracle = Oracle(model, weights, Caches(), shape, grain)
    step = [
        Span([draw.randrange(320) for _ in range(count)], 0, pages)
        for count, pages in ((4, (3, 1)), (2, (5, 0)))
    ]
    _, taps = ReferenceModel(model, weights, taps=range(5)).forward(make_batch(step, 16), cache)
    after = oracle.forward(step, 7)
    for ours, theirs in zip(after, taps.split(shape.hidden, dim=1), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=5e-5, atol=5e-5)


def test_shapes_here_are_those_of_the_models() -> None:
    from infx.engine.shapes import MODELS

    for name in ("mini", "m3_tp4_rank"):
        theirs, ours = MODELS[name](), SHAPES[name]
        pairs = {
            "hidden": "hidden_size", "heads": "heads", "kv_heads": "kv_heads",
            "head_dim": "head_dim", "rotary_dim": "rotary_dim", "block": "block_size",
            "topk_blocks": "topk_blocks", "experts": "experts", "expert_size": "expert_size",
            "experts_per_token": "experts_per_token", "dense_size": "dense_size",
            "ranks": "simulated_ranks", "rope_theta": "rope_theta", "norm_eps": "rms_norm_eps",
            "routed_scale": "routed_scaling_factor", "swiglu_alpha": "swiglu_alpha",
            "swiglu_limit": "swiglu_limit",
        }  # fmt: skip
        for mine, public in pairs.items():
            assert getattr(ours, mine) == getattr(theirs, public), (name, mine)
        assert theirs.shared_size == ours.expert_size
