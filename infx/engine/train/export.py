"""Between the training form and the weights that the engine serves."""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from infx.engine.train.layer import Layer
from infx.engine.train.target import Target

__all__ = ["engine_weights", "take_engine_weights"]

LIKE = ("attention_norm", "mlp_norm", "o", "up", "down")
"""Of a layer, by the same name in both forms."""

LIKE_ROUTED = ("router", "router_bias", "experts_up", "experts_down")
TOP = ("embed", "norm", "head")


def engine_weights(target: Target) -> dict[str, Tensor]:
    """Return float32 tensors by the names of `infx.engine.weights`, on the CPU, not rounded."""
    tensors = {name: getattr(target, name) for name in TOP}
    for n, layer in target.numbered:
        own = {name: getattr(layer, name) for name in _like(layer)}
        kinds = _kinds(layer)
        projections = [getattr(layer, kind) for kind in [*kinds, "v"]]
        norms = [getattr(layer, f"{kind}_norm").expand(heads, -1) for kind, heads in kinds.items()]
        own |= {"qkv": torch.cat(projections, 1), "head_norm": torch.cat(norms)}
        tensors |= {f"layers.{n}.{name}": tensor for name, tensor in own.items()}
    return {name: tensor.detach().float().cpu().contiguous() for name, tensor in tensors.items()}


@torch.no_grad()
def take_engine_weights(target: Target, weights: Mapping[str, Tensor]) -> None:
    """Give ``target`` the weights that `engine_weights` returned or a checkpoint holds."""
    for name in TOP:
        getattr(target, name).copy_(weights[name])
    for n, layer in target.numbered:
        for name in _like(layer):
            getattr(layer, name).copy_(weights[f"layers.{n}.{name}"])
        _take_heads(layer, weights[f"layers.{n}.qkv"], weights[f"layers.{n}.head_norm"])


def _take_heads(layer: Layer, projections: Tensor, norms: Tensor) -> None:
    kinds = _kinds(layer)
    widths = [getattr(layer, kind).shape[1] for kind in [*kinds, "v"]]
    first = 0
    for kind, part in zip([*kinds, "v"], projections.split(widths, 1), strict=True):
        getattr(layer, kind).copy_(part)
        if kind in kinds:
            layer.get_parameter(f"{kind}_norm").copy_(norms[first])
            first += kinds[kind]


def _kinds(layer: Layer) -> dict[str, int]:
    """Return the normed projections in the engine's order, and how many heads each has."""
    shape = layer.shape
    kinds = {"q": shape.heads, "k": shape.kv_heads}
    return kinds | ({"index_q": shape.kv_heads, "index_k": 1} if layer.sparse else {})


def _like(layer: Layer) -> tuple[str, ...]:
    return LIKE + (LIKE_ROUTED if layer.routed else ())
