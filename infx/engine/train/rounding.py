"""MXFP4 and e4m3 as the target meets them in training: values rounded, gradients passed through.

`infx.engine.quant` holds the definition; this form gives the same values (a test compares the
bits) without a table of constants, so that it compiles into one kernel and a CUDA graph can
hold it.
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from infx.engine.quant import E4M3_MAX, GROUP
from infx.engine.train.formulas import form

__all__ = ["as_held", "experts_rounded", "mxfp4"]


def mxfp4(x: Tensor) -> Tensor:
    """Return ``x`` [..., k] rounded to MXFP4 in groups of 32 along k, float32.

    Of the two exponents ⌊log2 amax⌋ - 2 and one more, the one of the smaller squared error, the
    lower when equal; e2m1 with ties to even.
    """
    groups = x.float().unflatten(-1, (-1, GROUP))
    largest = groups.abs().amax(-1, keepdim=True).clamp(min=2.0**-120)
    # The exponent's own bits: log2 in float32 rounds up just below a power of two.
    scale = (largest.view(torch.int32) & 0x7F800000).view(torch.float32) / 4
    fine, coarse = _e2m1(groups, scale), _e2m1(groups, 2 * scale)
    worse = _summed((fine - groups).square()) > _summed((coarse - groups).square())
    return torch.where(worse, coarse, fine).flatten(-2)


def _summed(x: Tensor) -> Tensor:
    """Return the sums of groups [..., 32] as [..., 1], halves added until one is left."""
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x


def _e2m1(x: Tensor, scale: Tensor) -> Tensor:
    """Return the nearest of scale · (0, ½, 1, 1½, 2, 3, 4, 6) with x's sign, ties to even."""
    size = (x / scale).abs()
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
    return torch.round(size / step).mul(step).clamp(max=6) * x.sign() * scale


class _Through(torch.autograd.Function):
    """Rounds [..., in, out] along ``in``; the gradient of the rounded is that of the original."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, fast: bool) -> Tensor:
        return form(_along_rows, fast)(weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def experts_rounded(weight: Tensor, fast: bool) -> Tensor:
    """Return experts [n, in, out] as MXFP4 stores them, groups along ``in``; straight-through."""
    rounded: Tensor = _Through.apply(weight, fast)
    return rounded


def _along_rows(weight: Tensor) -> Tensor:
    return mxfp4(weight.mT).mT.contiguous()


def as_held(
    q: Tensor, k: Tensor, v: Tensor, index_k: Tensor | None, every: int
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return the four as an MXFP4 cache gives them to attention, in each ``every``-th sequence.

    k, v and the index keys [b, ..., heads, dim] go through MXFP4, q through saturating e4m3; the
    gradients pass through.
    """
    chosen = (torch.arange(k.shape[0], device=k.device) % every == 0).view(-1, 1, 1, 1)

    def some(x: Tensor, rounded: Tensor) -> Tensor:
        return torch.where(chosen, x + (rounded - x).detach(), x)

    q = some(q, q.detach().clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn).float())
    k, v = some(k, mxfp4(k.detach())), some(v, mxfp4(v.detach()))
    return q, k, v, None if index_k is None else some(index_k, mxfp4(index_k.detach()))
