"""Weights as pieces: what kernels cut out of a word is the weight, and nothing is lost."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.mono.cuda import packing
from infx.engine.quant import mxfp4_pack, mxfp4_unpack

MASK = 0x81C081C0
LANE = st.integers(0, 31)


def bf16(half: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", half << 16))[0])


def f16(half: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", half))[0])


@pytest.fixture(scope="module")
def fp8() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    weight = torch.randint(0, 256, (48, 6144), dtype=torch.uint8)
    weight[(weight & 127) == 127] = 5
    return weight, packing.fp8_tiles(weight, 4)


@pytest.fixture(scope="module")
def mxfp4() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    sizes = torch.exp2(torch.randint(-5, 6, (2, 32, 24)).float()).repeat_interleave(32, -1)
    x = torch.randn(2, 32, 768) * 0.02 * sizes
    x[0, 0, :32] = 0
    return mxfp4_pack(x)


@pytest.fixture(scope="module")
def read(mxfp4: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pieces, and the numbers that they stand for."""
    return packing.mxfp4_tiles(*mxfp4), mxfp4_unpack(*mxfp4)


def test_fp8_comes_back(fp8: tuple[torch.Tensor, torch.Tensor]) -> None:
    weight, tiles = fp8
    assert tiles.shape == (4, 16, 3, 1536)
    assert torch.equal(packing.fp8_untiled(tiles), weight)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 3), st.integers(0, 15), st.integers(0, 2), st.integers(0, 2), LANE, st.data())
def test_fp8_as_the_kernel_reads_it(
    fp8: tuple[torch.Tensor, torch.Tensor],
    part: int,
    warp: int,
    tile: int,
    step: int,
    lane: int,
    data: st.DataObject,
) -> None:
    weight, tiles = fp8
    j = data.draw(st.integers(0, 3))
    at = 512 * step + 16 * lane + 4 * j
    word = int(tiles[part, warp, tile, at : at + 4].contiguous().view(torch.int32)) & 0xFFFFFFFF
    cut = (word & 0xBF80BF80, (word << 1) & 0x80008000 | (word << 7) & 0x3F803F80)
    for side, pair in enumerate(cut):
        for number in range(2):
            k = 1536 * part + 96 * warp + 32 * step + 8 * (lane % 4) + 2 * j + number
            wanted = weight[16 * tile + lane // 4 + 8 * side, k].view(torch.float8_e4m3fn).float()
            assert 256 * f16(pair >> 16 * number & 0xFFFF) == wanted


def test_fp8_of_nan_is_refused() -> None:
    weight = torch.zeros(16, 6144, dtype=torch.uint8)
    weight[3, 5] = 255
    with pytest.raises(ValueError, match="NaN"):
        packing.fp8_tiles(weight, 4)


def test_bf16_comes_back_and_lies_by_quarters() -> None:
    weight = torch.arange(32 * 6144, dtype=torch.int32).to(torch.int16).view(32, 6144)
    tiles = packing.bf16_tiles(weight, 8)
    assert torch.equal(packing.bf16_untiled(tiles), weight)
    # part 2, tile 1, warp 3, step 1, lane 4 x 5 + 2: outputs 5 and 13, inputs 4 q ... + 3.
    found = tiles[2, 1, 3, 256 + 22 * 8 :][:8]
    k = 2 * 768 + 3 * 48 + 16 + 8
    upper, lower = weight[21, k : k + 4], weight[29, k : k + 4]
    assert found.tolist() == [*upper[:2], *lower[:2], *upper[2:], *lower[2:]]


def test_gates_stand_beside_their_ups() -> None:
    rows = torch.arange(64)[:, None].expand(64, 3)
    mixed = packing.gates_beside_ups(rows)
    assert mixed[:16, 0].tolist() == [*range(8), *range(32, 40)]
    assert torch.equal(packing.ups_behind_gates(mixed), rows)


def test_mxfp4_comes_back(mxfp4: tuple[torch.Tensor, torch.Tensor]) -> None:
    data, scale = mxfp4
    tiles = packing.mxfp4_tiles(data, scale)
    assert tiles.shape == (2, 2, 2, packing.SLOT_BYTES)
    again, again_scale = packing.mxfp4_untiled(tiles)
    assert torch.equal(again, data)
    assert torch.equal(mxfp4_unpack(again, again_scale), mxfp4_unpack(data, scale))


def turn(word: int, left: int) -> int:
    """Return 32 bits turned left."""
    return (word << left | word >> 32 - left) & 0xFFFFFFFF


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 5), LANE, st.data())
def test_mxfp4_as_the_kernel_reads_it(
    read: tuple[torch.Tensor, torch.Tensor],
    expert: int,
    piece: int,
    tile: int,
    step: int,
    lane: int,
    data: st.DataObject,
) -> None:
    j = data.draw(st.integers(0, 3))
    tiles, wanted = read[0][expert, piece, tile], read[1]
    first = 512 * step + 16 * lane + 8 * (j // 2)
    v, w = (int(both) & 0xFFFFFFFF for both in tiles[first : first + 8].view(torch.int32))
    rest, word = v & 0x06030603 | w << 2 & 0xF9FCF9FC, (v, w)[j % 2]
    g, q = divmod(lane, 4)
    ends = tiles[3072 + 8 * (8 * (q // 2) + g) :][:8]
    nibbles = int(ends[step])
    turned = (word, word << 4, turn(word, 10), turn(rest, (6, 12)[j % 2]))
    for number, pair in enumerate(each & MASK for each in turned):
        side, k = number % 2, 384 * piece + 64 * step + 16 * q + 4 * j + 2 * (number // 2)
        scale = bf16((238 + (nibbles >> 4 * side & 15)) << 7)
        top = 2.0 ** (int(ends[6 + side]) - 127)
        for half in range(2):
            found = bf16(pair >> 16 * half & 0xFFFF) * scale * top
            assert found == wanted[expert, 16 * tile + g + 8 * side, k + half]


@pytest.mark.parametrize("fault", ["far apart", "NaN"])
def test_scales_that_a_piece_cannot_hold_are_refused(fault: str) -> None:
    data = torch.full((16, 192), 0x22, dtype=torch.uint8)
    scale = torch.full((16, 12), 120, dtype=torch.uint8)
    scale[2, 3] = {"far apart": 104, "NaN": 255}[fault]
    with pytest.raises(ValueError, match="MXFP4 scales"):
        packing.mxfp4_tiles(data, scale)
    data[2, 48:64] = 0  # A group of zeros has any scale.
    packing.mxfp4_tiles(data, scale)
