"""Number formats of weights, activations and caches: MXFP4 (packed) and FP8, by definition.

MXFP4 (OCP Microscaling 1.0): e2m1 numbers, codes 0-7 for the magnitudes of `MAGNITUDES` and bit 3
for the sign, in groups of 32 along the last axis. A group has one e8m0 scale: byte e stands for
2^(e - 127), 255 for NaN. A byte holds two codes, the first number's in the low nibble.

FP8 is e4m3 without infinities: largest number 448, rounded to nearest, ties to even.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from infx.engine.shapes import MXFP4_GROUP

__all__ = [
    "E4M3_MAX",
    "GROUP",
    "MAGNITUDES",
    "fp8_quantise",
    "fp8_round",
    "fp8_unpack",
    "mxfp4_pack",
    "mxfp4_round",
    "mxfp4_unpack",
    "saturating_e4m3",
]

GROUP = MXFP4_GROUP
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
E4M3_MAX = 448.0

_BIAS = 127
_MANTISSA = 23
# float32 and e8m0 have the same bias; 255 is NaN in both (and infinity in float32).
_NAN = 255
# Smaller groups share one scale, 2^-122: their squared errors are 0 in float32 in any case.
_LEAST = 2.0**-120


def mxfp4_pack(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``x`` [..., k] as codes uint8 [..., k / 2] and scales uint8 [..., k / 32].

    A group's exponent is floor(log2(amax)) - 2 or one more, whichever leaves the smaller sum of
    squared errors (float32, `_butterfly`), the lower one where they are equal; amax is taken as
    2^-120 at least. Numbers go to the nearest magnitude, ties to the even code, beyond 6 to 6. A
    group that holds a NaN or an infinity has scale 255. ``k`` must be a multiple of 32.
    """
    groups = x.float().reshape(*x.shape[:-1], -1, GROUP).contiguous()
    size = groups.abs()
    grid, edges, *_ = _tables(x.device)
    exponents = _exponents(size.amax(-1))
    scale = (exponents << _MANTISSA).view(torch.float32)[..., None]
    codes = torch.bucketize(size / scale, edges, out_int32=True)
    nearest = grid.index_select(0, codes.flatten()).view(codes.shape)
    errors = _butterfly((nearest * scale - size).square())
    upper = errors[1] < errors[0]
    chosen = torch.where(upper[..., None], codes[1], codes[0]) | groups.signbit().int() << 3
    data = (chosen[..., 0::2] | chosen[..., 1::2] << 4).to(torch.uint8).flatten(-2)
    return data, torch.where(upper, exponents[1], exponents[0]).to(torch.uint8)


def mxfp4_unpack(data: Tensor, scale: Tensor) -> Tensor:
    """Return float32 [..., k] of codes uint8 [..., k / 2] and scales uint8 [..., k / 32]."""
    *_, scales, pairs = _tables(data.device)
    numbers = pairs.index_select(0, data.flatten().int()).view(torch.float32)
    factors = scales.index_select(0, scale.flatten().int())
    return numbers.view(*scale.shape, GROUP).mul_(factors.view(*scale.shape, 1)).flatten(-2)


def mxfp4_round(x: Tensor) -> Tensor:
    """Return ``x`` [..., k] in float32 as MXFP4 holds it."""
    return mxfp4_unpack(*mxfp4_pack(x))


def saturating_e4m3(x: Tensor) -> Tensor:
    """Return ``x`` as float8_e4m3fn: beyond ±448 to ±448, NaN to NaN."""
    # Not every conversion saturates: without this some give NaN beyond 464.
    return x.clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)


def fp8_round(x: Tensor) -> Tensor:
    """Return ``x`` in float32 as e4m3 of unit scale holds it, saturating at ±448."""
    return saturating_e4m3(x).float()


def fp8_unpack(codes: Tensor) -> Tensor:
    """Return float32 of e4m3 bytes (uint8), by look-up."""
    return _e4m3(codes.device).index_select(0, codes.flatten().int()).view(codes.shape)


def fp8_quantise(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return e4m3 numbers and their float32 scale amax / 448 over ``dim``, kept with size 1.

    ``x`` is about numbers * scale. Zeros have scale 0; a NaN or an infinity makes its slice NaN.
    """
    x = x.float()
    scale = x.abs().amax(dim, keepdim=True) / E4M3_MAX
    return saturating_e4m3(x / torch.where(scale == 0, 1.0, scale)), scale


def _exponents(amax: Tensor) -> Tensor:
    """Return the two e8m0 bytes [2, ...] (int32) that a group of largest size ``amax`` may have."""
    # The exponent's own bits: log2 in float32 rounds up just below a power of two.
    exponent = amax.clamp(min=_LEAST).view(torch.int32) >> _MANTISSA & _NAN
    both = torch.stack((exponent - 2, exponent - 1))
    return both.masked_fill_(exponent == _NAN, _NAN)


def _butterfly(x: Tensor) -> Tensor:
    """Return the sums of ``x`` [..., 32] in one fixed order: halves are added until one is left.

    The order is that of a warp's exchange, and the same for any number of rows.
    """
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


@functools.cache
def _tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return magnitudes [8], edges [7], scales [256] and the two numbers of each byte [256].

    A magnitude has code i when edges[i - 1] < magnitude <= edges[i]: an edge is the middle of two
    magnitudes, or one float below it where the upper code is the even one. Two float32 numbers
    stand in one float64 of the last table.
    """
    # A table made in inference mode could never be used outside it.
    with torch.inference_mode(False):
        grid = torch.tensor(MAGNITUDES)
        middles = (grid[1:] + grid[:-1]) / 2
        below = torch.nextafter(middles, torch.zeros(()))
        edges = torch.where(torch.arange(len(middles)) % 2 == 1, below, middles)
        scales = torch.exp2(torch.arange(256, dtype=torch.float64) - _BIAS).float()
        scales[_NAN] = torch.nan
        signed, byte = torch.cat((grid, -grid)), torch.arange(256)
        pairs = torch.stack((signed[byte & 15], signed[byte >> 4]), dim=-1)
        # One look-up of 8 bytes: 183 us where rows of two floats took 448 (131,072 bytes).
        carried = pairs.view(torch.float64)[:, 0].contiguous()
        return grid.to(device), edges.to(device), scales.to(device), carried.to(device)


@functools.cache
def _e4m3(device: torch.device) -> Tensor:
    """Return the numbers [256] of all e4m3 bytes."""
    with torch.inference_mode(False):
        numbers = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn)
        return numbers.float().to(device)
