"""The model's small formulas for whole batches of sequences, plain or compiled.

They say the same as `infx.engine.model.layers`, which works in place on rows of a step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

__all__ = ["count", "form", "losses", "norm", "rotate", "swiglu", "weighed"]

P = ParamSpec("P")
R = TypeVar("R")


def form(function: Callable[P, R], fast: bool) -> Callable[P, R]:
    """Return ``function``, or its compiled form, which is made once for each set of shapes."""
    return _compiled(function) if fast else function


@functools.cache
def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    # One form a length of sequence and kind of layer: more than torch's default of 8.
    torch._dynamo.config.cache_size_limit = 64
    return torch.compile(function, dynamic=False)


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x · rsqrt(mean(x²) + eps) · (1 + weight) over the last dimension, float32."""
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)


def swiglu(gate_up: Tensor, alpha: float, limit: float) -> Tensor:
    """Return (u + 1) · g · σ(alpha · g) of [gate | up] halves, g ≤ limit, |u| ≤ limit."""
    gate, up = gate_up.chunk(2, dim=-1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    lit = gate * torch.sigmoid(alpha * gate)
    return lit * up + lit


def rotate(x: Tensor, cos: Tensor, sin: Tensor, size: int) -> Tensor:
    """Return ``x`` [..., heads, dim] turned; cos and sin broadcast over [..., 1, dim]."""
    half = size // 2
    partner = torch.cat([x[..., half:size], x[..., :half], x[..., size:]], -1)
    return x * cos + partner * sin


def count(chosen: Tensor, experts: int) -> Tensor:
    """Return how often each expert is in ``chosen`` [experts], int64 (bincount would wait)."""
    every = torch.arange(experts, device=chosen.device)
    return (chosen.flatten()[:, None] == every).sum(0)


def weighed(pairs: Tensor, weight: Tensor) -> Tensor:
    """Return Σ weight · pairs [n, hidden] over the second dimension of [n, k, hidden]."""
    return (pairs * weight[..., None].to(pairs.dtype)).sum(1)


def losses(stream: Tensor, weight: Tensor, head: Tensor, eps: float, goal: Tensor) -> Tensor:
    """Return the cross entropy of each token of ``goal`` [b, t], flat."""
    logits = (norm(stream, weight, eps) @ head).float()
    return cross_entropy(logits.flatten(0, 1), goal.flatten(), reduction="none")
