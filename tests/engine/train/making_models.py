"""Tiny shapes and conversations for the tests of training."""

from __future__ import annotations

import torch

from infx.engine.shapes import ModelConfig, mini
from infx.engine.train.target import Target

TINY = {
    "hidden_size": 32, "num_layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 32, "topk_blocks": 2,
    "experts": 4, "experts_per_token": 2, "expert_size": 32, "shared_size": 32, "dense_size": 64,
    "max_positions": 1024, "aux_layers": (0, 1, 2), "block_layers": (0, 2),
}  # fmt: skip


def tiny() -> ModelConfig:
    """Return a shape that trains a step in milliseconds."""
    return mini(**TINY)


def stirred(shape: ModelConfig, seed: int = 3) -> Target:
    """Return a target none of whose weights is zero, so that every part shows in the logits."""
    target = Target(shape, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            size = parameter.shape[-2] ** -0.5 if parameter.ndim > 1 else 0.1
            if name not in ("embed", "head"):
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * size)
        for _, layer in target.numbered:
            if layer.routed:
                layer.router_bias.copy_(torch.randn(shape.experts, generator=generator) * 0.02)
    return target
