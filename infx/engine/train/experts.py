"""The mixture of experts over many rows: every expert on every row, or rows dealt to experts.

The dealt form needs CUDA and bfloat16; its gathers have backwards of their own, gathers again, so
that no sum depends on the order in which threads arrive.
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from infx.engine.shapes import ModelConfig
from infx.engine.train.formulas import form, swiglu, weighed

__all__ = ["mix_all", "mix_dealt", "route", "rows_of"]


def route(x: Tensor, router: Tensor, bias: Tensor, shape: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return chosen experts [n, k] and their weights [n, k] of rows ``x`` [n, hidden].

    The bias decides who is chosen, not with which weight, and has no gradient.
    """
    probability = torch.sigmoid(x @ router)
    chosen = (probability.detach() + bias).topk(shape.experts_per_token, -1).indices
    weight = probability.gather(1, chosen)
    return chosen, shape.routed_scaling_factor * weight / weight.sum(-1, keepdim=True)


def mix_all(
    x: Tensor, chosen: Tensor, weight: Tensor, up: Tensor, down: Tensor, shape: ModelConfig
) -> Tensor:
    """Return Σ weight · expert(x) [n, hidden] with every expert computed for every row."""
    spread = torch.zeros(x.shape[0], shape.experts, dtype=weight.dtype, device=x.device)
    spread = spread.scatter(1, chosen, weight)
    inner = swiglu(x @ up, shape.swiglu_alpha, shape.swiglu_limit)
    inner = inner * spread.t()[..., None]
    return inner.transpose(0, 1).flatten(1) @ down.flatten(0, 1)


def mix_dealt(
    x: Tensor,
    chosen: Tensor,
    weight: Tensor,
    up: Tensor,
    down: Tensor,
    shape: ModelConfig,
    load: Tensor,
) -> Tensor:
    """Return Σ weight · expert(x) [n, hidden]; ``load`` [experts] are rows of each expert."""
    topk = shape.experts_per_token
    order = chosen.flatten().argsort(stable=True)
    back = torch.empty_like(order)
    back.scatter_(0, order, torch.arange(order.numel(), device=order.device))
    ends = load.cumsum(0).to(torch.int32)
    dealt = _Deal.apply(x.bfloat16(), order // topk, back, topk)
    inner = torch._grouped_mm(dealt, up.bfloat16(), offs=ends)
    inner = form(swiglu, True)(inner, shape.swiglu_alpha, shape.swiglu_limit)
    done = torch._grouped_mm(inner.bfloat16(), down.bfloat16(), offs=ends)
    pairs = _Permute.apply(done, back, order)
    return form(weighed, True)(pairs.view(x.shape[0], topk, -1), weight)


def rows_of(tokens: Tensor, table: Tensor) -> Tensor:
    """Return table[tokens]; the backward is a matrix product, which a CUDA graph can hold."""
    rows: Tensor = _Rows.apply(tokens, table)
    return rows


class _Deal(torch.autograd.Function):
    """x[rows], each row ``topk`` times; backward: the sum of a row's copies."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, back: Tensor, topk: int) -> Tensor:
        ctx.save_for_backward(back)
        ctx.topk = topk
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (back,) = ctx.saved_tensors
        copies = gradient.index_select(0, back).view(-1, ctx.topk, gradient.shape[-1])
        return copies.sum(1), None, None, None


class _Permute(torch.autograd.Function):
    """x[order]; backward: gradient[inverse]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return gradient.index_select(0, inverse), None, None


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.size = table.shape[0]
        return table[tokens]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        (tokens,) = ctx.saved_tensors
        flat = tokens.flatten()
        low = torch.bfloat16 if gradient.is_cuda else gradient.dtype
        hot = (torch.arange(ctx.size, device=flat.device)[:, None] == flat).to(low)
        return None, (hot @ gradient.flatten(0, -2).to(low)).float()
