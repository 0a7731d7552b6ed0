"""Weights in the order in which warps read them: contiguous pieces for the copy engine.

A tile is 16 outputs. In a tile, lane 4 g + q holds outputs g and g + 8 and the inputs that a matrix
instruction takes from quarter q, in an order of K that is free as long as the activations follow it
(kernels/fp8.cuh, route.cuh, mxfp4.cuh). All functions work on any device and have an inverse.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "MOST_BELOW",
    "NUMBER_BYTES",
    "PIECE",
    "SCALE_BYTES",
    "SLOT_BYTES",
    "WARPS",
    "bf16_tiles",
    "bf16_untiled",
    "fp8_tiles",
    "fp8_untiled",
    "gates_beside_ups",
    "mxfp4_tiles",
    "mxfp4_untiled",
    "ups_behind_gates",
]

WARPS = 16
PIECE = 384  # inputs of a piece of MXFP4
STEPS = PIECE // 64
NUMBER_BYTES, SCALE_BYTES = 8 * PIECE, STEPS + 2  # the latter for a g and half of q
SLOT_BYTES = NUMBER_BYTES + 16 * SCALE_BYTES  # 3200: whole lines of 128
# A nibble for the scales of a slice (an output's 384 inputs): 2^-15 to 1 times the largest, which
# is held as a byte: the exponent of a float32.
MOST_BELOW = 15


def _places() -> dict[tuple[int, int, int, int], tuple[int, int]]:
    """Return where the 16 numbers of two words lie: (word, half, number, bit) → (word, bit).

    Numbers of a half word: outputs g and g + 8 at an input, then at the input two on; bits from the
    sign down. A kernel turns a word (or what two words have left) by `turn` and cuts a number out
    of each half under one mask (multiply_words in kernels/mxfp4.cuh).
    """
    mask, left_of_first = (15, 8, 7, 6), {0, 1, 9, 10}
    places = {}
    for word, half, number, bit in itertools.product(range(2), range(2), range(4), range(4)):
        turn = (0, 4, 10, (6, 12)[word])[number]
        at = (mask[bit] + 16 * half - turn) % 32
        if number < 3:
            places[word, half, number, bit] = word, at
        elif at % 16 in left_of_first:
            places[word, half, number, bit] = 0, at
        else:
            places[word, half, number, bit] = 1, at - 2
    return places


_PLACES = _places()


def fp8_tiles(weight: Tensor, parts: int) -> Tensor:
    """Return e4m3 bytes [out, in] (uint8) as [parts, warps, tiles, bytes].

    A half word holds two outputs of an input: g's sign at bit 15 and its seven bits at 7, those of
    g + 8 at 14 and 0. Raises ValueError for a NaN, which would become a number.
    """
    import torch

    if bool(((weight & 127) == 127).any()):
        raise ValueError("an FP8 weight is NaN: expected numbers")
    outputs, inputs = weight.shape
    steps = inputs // (parts * WARPS * 32)
    # tile, row's half, g, part, warp, step of 32, q, pair, number of the pair
    cut = weight.view(outputs // 16, 2, 8, parts, WARPS, steps, 4, 4, 2)
    upper, lower = cut.permute(1, 3, 4, 0, 5, 2, 6, 7, 8).int()
    half = (upper & 128) << 8 | (upper & 127) << 7 | (lower & 128) << 7 | lower & 127
    tiles = torch.stack((half & 255, half >> 8), dim=-1).to(torch.uint8)
    return tiles.reshape(parts, WARPS, outputs // 16, -1)


def fp8_untiled(tiles: Tensor) -> Tensor:
    """Return what `fp8_tiles` was given."""
    import torch

    parts, warps, count, size = tiles.shape
    cut = tiles.view(parts, warps, count, size // 512, 8, 4, 4, 2, 2).int()
    half = cut[..., 0] | cut[..., 1] << 8
    upper, lower = half >> 8 & 128 | half >> 7 & 127, half >> 7 & 128 | half & 127
    # part, warp, tile, step, g, q, pair, number, row's half
    both = torch.stack((upper, lower), dim=-1).to(torch.uint8)
    return both.permute(2, 8, 4, 0, 1, 3, 5, 6, 7).reshape(16 * count, -1)


def bf16_tiles(weight: Tensor, parts: int) -> Tensor:
    """Return bf16 [out, in] as [parts, tiles, warps, numbers of a piece]."""
    outputs, inputs = weight.shape
    steps = inputs // (parts * WARPS * 16)
    cut = weight.view(outputs // 16, 2, 8, parts, WARPS, steps, 4, 2, 2)
    return cut.permute(3, 0, 4, 5, 2, 6, 7, 1, 8).reshape(parts, outputs // 16, WARPS, -1)


def bf16_untiled(tiles: Tensor) -> Tensor:
    """Return what `bf16_tiles` was given."""
    parts, count, warps, size = tiles.shape
    cut = tiles.view(parts, count, warps, size // 256, 8, 4, 2, 2, 2)
    return cut.permute(1, 7, 4, 0, 2, 3, 5, 6, 8).reshape(16 * count, -1)


def gates_beside_ups(rows: Tensor) -> Tensor:
    """Return [..., gates | ups, in] with 8 gates and their 8 ups in each tile of 16 outputs."""
    *lead, outputs, inputs = rows.shape
    cut = rows.view(*lead, 2, outputs // 16, 8, inputs)
    return cut.transpose(-4, -3).reshape(rows.shape)


def ups_behind_gates(rows: Tensor) -> Tensor:
    """Return what `gates_beside_ups` was given."""
    *lead, outputs, inputs = rows.shape
    cut = rows.view(*lead, outputs // 16, 2, 8, inputs)
    return cut.transpose(-4, -3).reshape(rows.shape)


def mxfp4_tiles(data: Tensor, scale: Tensor) -> Tensor:
    """Return `infx.engine.quant.mxfp4_pack`'s bytes [..., out, in / 2] and scales as pieces.

    The result is uint8 [..., in / 384, out / 16, 3200]. Raises ValueError for what a piece cannot
    hold: a group that is not 0 with a scale under 2^-15 of its slice's largest, or one of NaN.
    """
    import torch

    *lead, outputs, half = data.shape
    count, pieces = outputs // 16, 2 * half // PIECE
    codes = torch.stack((data & 15, data >> 4), dim=-1).view(*lead, outputs, 2 * half)
    # expert, tile, row's half, g, piece, step of 64, q, two words, word, pair, number of the pair
    cut = codes.view(-1, count, 2, 8, pieces, STEPS, 4, 2, 2, 2, 2)
    words = _words(cut.permute(0, 4, 1, 5, 3, 6, 7, 8, 10, 9, 2).flatten(-2))
    below, tops = _below_top(codes, scale)
    # expert, piece, tile, half of q, g, step, row's half
    nibbles = below.view(-1, count, 2, 8, pieces, STEPS, 2).permute(0, 4, 1, 6, 3, 5, 2)
    scales = nibbles[..., 0] | nibbles[..., 1] << 4
    tops = tops.view(-1, count, 2, 8, pieces).permute(0, 4, 1, 3, 2)
    ends = torch.cat((scales, tops[:, :, :, None].expand(-1, -1, -1, 2, -1, -1)), dim=-1)
    sides = [side.reshape(-1, pieces, count, side[0, 0, 0].numel()) for side in (words, ends)]
    return torch.cat(sides, dim=-1).view(*lead, pieces, count, SLOT_BYTES)


def mxfp4_untiled(tiles: Tensor) -> tuple[Tensor, Tensor]:
    """Return what `mxfp4_tiles` was given, but for the scales of groups of zeros."""
    *lead, pieces, count, _ = tiles.shape
    words, ends = tiles[..., :NUMBER_BYTES], tiles[..., NUMBER_BYTES:]
    ends = ends.reshape(-1, pieces, count, 2, 8, SCALE_BYTES)
    codes = _codes(words.reshape(-1, pieces, count, STEPS, 8, 4, 2, 2, 4))
    codes = codes.view(*codes.shape[:-1], 2, 2)
    # expert, piece, tile, step, g, q, two words, word, number, pair, row's half
    flat = codes.permute(0, 2, 10, 4, 1, 3, 5, 6, 7, 9, 8).reshape(*lead, 16 * count, -1)
    nibbles = (ends[..., :STEPS, None] >> ends.new_tensor((0, 4))) & 15
    # expert, tile, row's half, g, piece, step, half of q
    below = nibbles.permute(0, 2, 6, 4, 1, 5, 3).reshape(*lead, 16 * count, -1)
    top = ends[:, :, :, 0, :, STEPS:].permute(0, 2, 4, 3, 1).reshape(*lead, 16 * count, -1)
    scale = below.int() + (top.int() - MOST_BELOW).repeat_interleave(PIECE // 32, dim=-1)
    return flat[..., 0::2] | flat[..., 1::2] << 4, scale.to(flat.dtype)


def _below_top(codes: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return a nibble a group, and a byte a slice."""
    import torch

    filled = (codes.view(*scale.shape, 32) & 7).amax(-1) > 0
    slices = torch.where(filled, scale.int(), -1).view(*scale.shape[:-1], -1, PIECE // 32)
    largest = slices.amax(-1, keepdim=True)
    nibbles = torch.where(slices >= 0, slices - largest + MOST_BELOW, 0)
    if bool((nibbles < 0).any()) or int(largest.max()) > 254:
        raise ValueError(
            f"MXFP4 scales of {int(slices.max())} and {int(slices[slices >= 0].min())} in a layer:"
            f" expected those of {PIECE} inputs within 2^{MOST_BELOW} of each other, and no NaN"
        )
    tops = torch.where(largest > 0, largest, 1)
    return nibbles.flatten(-2).to(torch.uint8), tops[..., 0].to(torch.uint8)


def _words(codes: Tensor) -> Tensor:
    """Return bytes [..., 2, 4] of the numbers [..., 2 words, 2 halves, 4] of each two words."""
    import torch

    words = [torch.zeros(codes.shape[:-3], dtype=torch.int64, device=codes.device) for _ in "vw"]
    for (word, half, number, bit), (into, place) in _PLACES.items():
        words[into] |= (codes[..., word, half, number].long() >> (3 - bit) & 1) << place
    both = torch.stack(words, dim=-1)
    return torch.stack([both >> shift & 255 for shift in (0, 8, 16, 24)], dim=-1).to(torch.uint8)


def _codes(words: Tensor) -> Tensor:
    """Return the numbers [..., 2 words, 2 halves, 4] of bytes [..., 2, 4]."""
    import torch

    value = torch.stack([words[..., byte].long() << 8 * byte for byte in range(4)]).sum(0)
    codes = torch.zeros((*words.shape[:-1], 2, 4), dtype=torch.uint8, device=words.device)
    for (word, half, number, bit), (into, place) in _PLACES.items():
        codes[..., word, half, number] |= ((value[..., into] >> place & 1) << (3 - bit)).to(
            torch.uint8
        )
    return codes
