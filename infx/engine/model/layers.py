"""The small formulas of MiniMax-M3: norm, rotary positions, the clamped swiglu."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Rotary", "Turn", "gemma_norm", "rotate", "swiglu_oai"]


def gemma_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x · rsqrt(mean(x²) + eps) · (1 + weight) over the last dimension."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)


def swiglu_oai(gate_up: Tensor, alpha: float, limit: float) -> Tensor:
    """Return (u + 1) · g · σ(alpha · g) of [gate | up] halves, g ≤ limit, |u| ≤ limit."""
    gate, up = gate_up.chunk(2, dim=-1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    lit = gate * torch.sigmoid(alpha * gate)
    return torch.addcmul(lit, lit, up)


@dataclass(frozen=True, slots=True)
class Turn:
    """The rotation of some rows: x · cos + x[partner] · sin, over whole heads.

    ``cos``, ``sin`` [rows, 1, dim] (1 and 0 past the rotary dimensions), ``partner`` [dim].
    """

    cos: Tensor
    sin: Tensor
    partner: Tensor


class Rotary:
    """Rotary positions on the first ``size`` of ``dim`` dimensions, NeoX pairs (i, i + size/2).

    A pair (a, b) becomes (a c - b s, b c + a s) with angle position · theta^(-2i/size).
    """

    def __init__(self, dim: int, size: int, theta: float, positions: int) -> None:
        inverse = theta ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = torch.outer(torch.arange(positions, dtype=torch.float64), inverse)
        rest = torch.zeros(positions, dim - size, dtype=torch.float64)
        self._cos = torch.cat([angle.cos(), angle.cos(), rest + 1], dim=1).float()
        self._sin = torch.cat([-angle.sin(), angle.sin(), rest], dim=1).float()
        self._partner = torch.arange(dim)
        self._partner[:size] = self._partner[:size].roll(size // 2)

    def at(self, positions: Tensor) -> Turn:
        """Return the turn of ``positions`` [rows], the same for every layer."""
        return Turn(self._cos[positions][:, None], self._sin[positions][:, None], self._partner)


def rotate(x: Tensor, turn: Turn) -> Tensor:
    """Return ``x`` [rows, heads, dim] turned."""
    return torch.addcmul(x * turn.cos, x.index_select(-1, turn.partner), turn.sin)
