"""The small formulas of MiniMax-M3: norm, rotary positions, the clamped swiglu."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.quant import fp8_quantise

__all__ = [
    "Rotary",
    "Turn",
    "gemma_norm",
    "projection",
    "rotate",
    "swiglu_oai",
    "turn_tables",
]

# Positions tabulated at once: the true model's half million would take half a gigabyte.
FIRST_POSITIONS = 16384


def gemma_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x · rsqrt(mean(x²) + eps) · (1 + weight) over the last dimension."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + weight)


def swiglu_oai(gate_up: Tensor, alpha: float, limit: float) -> Tensor:
    """Return (u + 1) · g · σ(alpha · g) of [gate | up] halves, g ≤ limit, |u| ≤ limit."""
    gate, up = gate_up.chunk(2, dim=-1)
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    lit = gate * torch.sigmoid(alpha * gate)
    return torch.addcmul(lit, lit, up)


def projection(weight: Tensor, dtype: str) -> Callable[[Tensor], Tensor]:
    """Return the product with ``weight`` [in, out]: float32 ("fp32"), or of e4m3 numbers ("fp8").

    With FP8 each row of the input has its scale, and each output channel of the weight; numbers
    are multiplied and added in float32.
    """
    if dtype == "fp32":
        return lambda x: x @ weight
    numbers, scale = fp8_quantise(weight, 0)
    columns = numbers.float()

    def product(x: Tensor) -> Tensor:
        rows, row_scale = fp8_quantise(x, -1)
        return (rows.float() @ columns) * row_scale * scale

    return product


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
        self._size, self._dim, self._theta, self._positions = size, dim, theta, positions
        self._partner = torch.arange(dim)
        self._partner[:size] = self._partner[:size].roll(size // 2)
        self._tabulate(min(positions, FIRST_POSITIONS))

    def at(self, positions: Tensor) -> Turn:
        """Return the turn of ``positions`` [rows], the same for every layer."""
        known = len(self._cos)
        if known < self._positions and len(positions) and (last := int(positions.max())) >= known:
            self._tabulate(min(self._positions, 2 * last))
        return Turn(self._cos[positions][:, None], self._sin[positions][:, None], self._partner)

    def _tabulate(self, positions: int) -> None:
        self._cos, self._sin = turn_tables(self._size, self._dim, self._theta, positions)


def turn_tables(size: int, dim: int, theta: float, positions: int) -> tuple[Tensor, Tensor]:
    """Return cos and sin [positions, dim] of rotary positions on the first ``size`` dimensions.

    sin has the sign of its term; past ``size`` they are 1 and 0.
    """
    inverse = theta ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.outer(torch.arange(positions, dtype=torch.float64), inverse)
    rest = torch.zeros(positions, dim - size, dtype=torch.float64)
    cos = torch.cat([angle.cos(), angle.cos(), rest + 1], dim=1).float()
    return cos, torch.cat([-angle.sin(), angle.sin(), rest], dim=1).float()


def rotate(x: Tensor, turn: Turn) -> Tensor:
    """Return ``x`` [rows, heads, dim] turned."""
    return torch.addcmul(x * turn.cos, x.index_select(-1, turn.partner), turn.sin)
