"""A whole layer by infx's reference model, from the weights and caches that kernels read.

The stages' judges (`infx.engine.mono.cuda.judge`) start from what the stage before left; here
errors add up, and a near-tie of experts or blocks shows as one row that is far off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import (
    bf16_untiled,
    fp8_untiled,
    mxfp4_untiled,
    ups_behind_gates,
)
from infx.engine.mono.cuda.random_layer import BLOCK, DIM, RandomLayer, Step

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.cache import KvCache
    from infx.engine.shapes import ModelConfig

__all__ = ["judge_layer", "layer_truth"]


def judge_layer(layer: RandomLayer, step: Step, stream: Tensor, out: Tensor) -> dict[str, float]:
    """Return the rows' errors ||out - truth|| / ||truth - stream||: the median and the largest.

    Against what the layer adds to the stream, since the stream itself no layer can get wrong.
    """
    live = step.tensors["batch_ids"] >= 0
    truth = layer_truth(layer, step, stream)[live]
    error = (out[live] - truth).norm(dim=-1) / (truth - stream[live]).norm(dim=-1)
    return {"layer-median": float(error.median()), "layer-largest": float(error.max())}


def layer_truth(layer: RandomLayer, step: Step, stream: Tensor) -> Tensor:
    """Return the stream [rows, hidden] after the layer, in float32; pads' rows mean nothing.

    Caches may hold the step's own tokens already: the reference writes its own.
    """
    import torch

    from infx.engine.batch import Span, make_batch
    from infx.engine.model.reference import ReferenceModel

    tables = zip(
        step.tensors["batch_ids"].tolist(),
        step.tensors["positions"].tolist(),
        step.tensors["pages"].tolist(),
        strict=True,
    )
    # Row r's token is r, and the embedding is the stream.
    spans = [Span([r], at, pages) for r, (asked, at, pages) in enumerate(tables) if asked >= 0]
    with torch.device(stream.device), torch.no_grad():
        config = _config(layer, step)
        weights = {f"layers.0.{name}": tensor for name, tensor in _weights(layer).items()}
        outside = {"embed": stream, "norm": stream[0], "head": stream[:1].T}
        model = ReferenceModel(config, {**outside, **weights})
        batch = make_batch(spans, BLOCK, width=step.rows)
        return model.forward(batch, _cache(config, layer))[0]


def _config(layer: RandomLayer, step: Step) -> ModelConfig:
    """Return the rank's shape with this layer alone."""
    from dataclasses import replace

    from infx.engine.shapes import m3_tp4_rank

    return replace(
        m3_tp4_rank(),
        num_layers=1,
        full_layers=0,
        dense_layers=0,
        experts=len(layer.tensors["up"]) - 1,
        vocab_size=step.rows,
        max_positions=step.pages_a_row * BLOCK,
        aux_layers=(0, 0, 0),
        block_layers=(0,),
        router_dtype="fp32",
    )


def _weights(layer: RandomLayer) -> dict[str, Tensor]:
    """Return what the kernels' weights stand for, by infx's names, matrices [in, out]."""
    import torch

    given = layer.tensors
    router = bf16_untiled(given["router"]).view(torch.bfloat16).float()
    ups = torch.stack([ups_behind_gates(_numbers(tiles)).T for tiles in given["up"]])
    downs = torch.stack([_numbers(tiles).T for tiles in given["down"]])
    # Norms are kept as 1 + w; the shared expert is the last one.
    return {
        **{name: given[name] - 1 for name in ("attention_norm", "mlp_norm", "head_norm")},
        **{name: _fp8(given, name).T for name in ("qkv", "o")},
        "router": router.T[:, : len(ups) - 1],
        "router_bias": given["router_bias"][: len(ups) - 1],
        "experts_up": ups[:-1],
        "experts_down": downs[:-1],
        "up": ups[-1],
        "down": downs[-1],
    }


def _fp8(given: dict[str, Tensor], name: str) -> Tensor:
    import torch

    numbers = fp8_untiled(given[name]).view(torch.float8_e4m3fn).float()
    return numbers * given[f"{name}_scale"][:, None]


def _numbers(tiles: Tensor) -> Tensor:
    from infx.engine.quant import mxfp4_unpack

    return mxfp4_unpack(*mxfp4_untiled(tiles))


def _cache(config: ModelConfig, layer: RandomLayer) -> KvCache:
    """Return the reference's cache with the layer's bytes."""
    from infx.engine.cache import Kinds, KvCache

    given = layer.tensors
    pages = given["keys"].numel() // (BLOCK * DIM)
    cache = KvCache.empty(config, pages, kinds=Kinds("fp8", "fp8"))
    (numbers, scales), (index,) = cache.layer_parts(0)
    for first, name in ((0, "key"), (pages, "value")):
        numbers[first : first + pages] = given[f"{name}s"].view(pages, BLOCK, DIM)
        scales[first : first + pages] = given[f"{name}_scales"].view(pages, BLOCK, 1)
    index.copy_(given["index_keys"].view(pages, BLOCK, DIM))
    return cache
