"""The number formats against their written-out definition, in plain Python and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.quant import (
    fp8_quantise,
    fp8_round,
    fp8_unpack,
    mxfp4_pack,
    mxfp4_round,
    mxfp4_unpack,
    saturating_e4m3,
)

E2M1 = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]
NAN, INF = math.nan, math.inf
BIG = 3e38

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
# Mostly numbers of one size, as in a tensor; sometimes anything at all.
sizes = st.one_of(st.floats(-8, 8, width=32), floats32)
groups = st.lists(sizes, min_size=32, max_size=32)


def e4m3(byte: int) -> float:
    """The number of an e4m3 byte: sign, 4 bits of exponent (bias 7), 3 of mantissa."""
    sign, exponent, mantissa = -1.0 if byte & 0x80 else 1.0, byte >> 3 & 15, byte & 7
    if byte & 0x7F == 0x7F:
        return NAN
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


E4M3 = sorted({e4m3(byte): byte for byte in range(127)}.items())


def nearest_e4m3(value: float) -> float:
    """The nearest e4m3 number, ties to the even byte, beyond ±448 the largest."""
    size = min(abs(Fraction(value)), Fraction(448))
    best = min(E4M3, key=lambda entry: (abs(Fraction(entry[0]) - size), entry[1] & 1))
    return math.copysign(best[0], value)


def nearest_code(size: Fraction) -> int:
    """The code of the nearest e2m1 magnitude, ties to the even code, beyond 6 that of 6."""
    return min(range(8), key=lambda code: (abs(E2M1[code] - size), code % 2))


def codes_at(group: list[float], exponent: int) -> tuple[list[int], Fraction]:
    """Codes of a group at scale 2^exponent, and their squared error."""
    scale = Fraction(2) ** exponent
    codes = [nearest_code(abs(Fraction(x)) / scale) for x in group]
    errors = (E2M1[code] * scale - abs(Fraction(x)) for code, x in zip(codes, group, strict=True))
    signs = (math.copysign(1, x) < 0 for x in group)
    return [c + 8 * s for c, s in zip(codes, signs, strict=True)], sum(e * e for e in errors)


def candidates(group: list[float]) -> list[tuple[int, list[int], Fraction]]:
    """Both (exponent, codes, error) that a group may take, the lower exponent first."""
    largest = max(Fraction(2) ** -120, *(abs(Fraction(x)) for x in group))
    low = math.frexp(float(largest))[1] - 1 - 2
    return [(exponent, *codes_at(group, exponent)) for exponent in (low, low + 1)]


def packed(group: list[float]) -> tuple[int, list[int]]:
    """The exponent and the codes of one packed group, read from its bytes."""
    data, scale = mxfp4_pack(torch.tensor(group))
    assert (data.dtype, data.shape, scale.dtype, scale.shape) == (
        torch.uint8, (16,), torch.uint8, (1,),
    )  # fmt: skip
    return scale.item() - 127, [n for byte in data.tolist() for n in (byte % 16, byte // 16)]


def a_group(*first: float) -> list[float]:
    return [*first, *[0.0] * (32 - len(first))]


@settings(deadline=None)
@given(groups)
def test_a_group_packs_to_the_codes_and_the_scale_of_the_definition(group):
    low, high = candidates(group)
    exponent, codes = packed(group)
    chosen = {low[0]: low, high[0]: high}[exponent]
    assert codes == chosen[1]
    # float32 errors overflow above 1e19 and vanish below 1e-19: then the lower exponent stands.
    if 2.0**-60 < max(map(abs, group)) < 2.0**60:
        other = high if chosen is low else low
        assert chosen[2] <= other[2] * (1 + Fraction(1, 2**18))


@pytest.mark.parametrize(
    ("group", "exponent"),
    [
        (a_group(6.0), 0),  # exact at both 0 and 1 (as 3): the lower
        (a_group(7.0), 0),  # 1 away from 6 and from 8: the lower
        (a_group(7.5), 1),  # 8 instead of 6
        (a_group(7.5, *[0.5] * 30), 0),  # the small ones would be lost at scale 2
        (a_group(0.0), -122),
        (a_group(2.0**-130), -122),
        (a_group(2.0**-121), -122),
        (a_group(BIG), 125),
        (a_group(2.0**100 - 2.0**76), 97),  # log2 in float32 would be 100
    ],
)
def test_the_scale_is_the_one_of_less_error(group, exponent):
    group = torch.tensor(group).tolist()
    low, high = candidates(group)
    assert exponent in (low[0], high[0])
    assert packed(group)[0] == exponent


@pytest.mark.parametrize(
    ("tie", "code"), [(0.25, 0), (0.75, 2), (1.25, 2), (1.75, 4), (2.5, 4), (3.5, 6), (5.0, 6)]
)
def test_a_tie_goes_to_the_even_code_and_its_neighbours_to_theirs(tie, code):
    below, above = (torch.nextafter(torch.tensor(tie), torch.tensor(to)).item() for to in (0, 9))
    exponent, codes = packed(a_group(tie, below, above, -tie, 6.0))
    assert exponent == 0
    lower = sum(magnitude < tie for magnitude in E2M1) - 1
    assert codes[:4] == [code, lower, lower + 1, code + 8]


def test_the_first_number_of_a_byte_is_in_its_low_nibble():
    data, scale = mxfp4_pack(torch.tensor(a_group(0.5, 6.0, -1.0, 3.0)))
    assert data[:3].tolist() == [0x71, 0x5A, 0x00]
    assert scale.tolist() == [127]
    assert mxfp4_unpack(data, scale)[:4].tolist() == [0.5, 6.0, -1.0, 3.0]


def test_every_byte_and_every_scale_unpacks_to_its_numbers():
    data = torch.arange(256, dtype=torch.uint8).view(16, 16)
    for scale in (0, 1, 127, 254):
        told = mxfp4_unpack(data, torch.full((16, 1), scale, dtype=torch.uint8)).flatten().tolist()
        for byte in range(256):
            for number, code in zip(told[2 * byte :], (byte & 15, byte >> 4), strict=False):
                size = float(E2M1[code & 7]) * 2.0 ** (scale - 127)
                size = torch.tensor(size, dtype=torch.float64).float().item()
                assert (abs(number), number.hex()[0] == "-") == (size, code >= 8)
    assert mxfp4_unpack(data, torch.full((16, 1), 255, dtype=torch.uint8)).isnan().all()


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_group_with_a_nan_or_an_infinity_is_nan_and_its_neighbours_are_not(bad):
    x = torch.ones(2, 96)
    x[0, 40] = bad
    _, scale = mxfp4_pack(x)
    assert (scale == 255).tolist() == [[False, True, False], [False, False, False]]
    assert mxfp4_round(x).isnan().view(2, 3, 32).all(-1).tolist() == (scale == 255).tolist()


def test_beyond_six_times_the_scale_saturates():
    group = torch.tensor(a_group(7.5, -7.9, *[0.5] * 30))
    assert mxfp4_round(group)[:3].tolist() == [6.0, -6.0, 0.5]


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), min_size=16, max_size=16), st.integers(6, 250))
def test_what_is_packed_already_is_packed_to_itself(data, scale):
    numbers = mxfp4_unpack(torch.tensor(data, dtype=torch.uint8), torch.tensor([scale]).byte())
    again = mxfp4_round(numbers)
    assert torch.equal(again, numbers)
    assert torch.equal(again.signbit(), numbers.signbit())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 9))
def test_a_rows_bytes_do_not_depend_on_the_other_rows(seed, rows):
    x = torch.randn(rows, 3, 64, generator=torch.Generator().manual_seed(seed))
    together, alone = mxfp4_pack(x), mxfp4_pack(x[-1].clone())
    strided = mxfp4_pack(x.transpose(1, 2).contiguous().transpose(1, 2)[-1:])
    for whole, one, other in zip(together, alone, strided, strict=True):
        assert torch.equal(whole[-1], one)
        assert torch.equal(whole[-1:], other)


def test_a_width_that_is_no_multiple_of_32_is_refused():
    with pytest.raises(RuntimeError, match="32"):
        mxfp4_pack(torch.ones(2, 40))


@settings(deadline=None)
@given(floats32)
def test_e4m3_is_the_nearest_number_and_saturates(value):
    expected = nearest_e4m3(value)
    told = fp8_round(torch.tensor([value])).item()
    assert (told, math.copysign(1, told)) == (expected, math.copysign(1, expected))


def test_e4m3_of_ties_of_the_ends_and_of_what_is_no_number():
    ends = torch.tensor([448.0, 449.0, 464.0, 1e9, INF, -449.0, -INF])
    assert fp8_round(ends).tolist() == [448.0] * 5 + [-448.0] * 2
    assert fp8_round(torch.tensor([NAN, -NAN])).isnan().all()
    ties = torch.tensor([17.0, 19.0, 2.0**-10, 3 * 2.0**-10])
    assert fp8_round(ties).tolist() == [16.0, 20.0, 0.0, 2.0**-8]


def test_every_e4m3_byte_unpacks_to_its_number():
    told = fp8_unpack(torch.arange(256, dtype=torch.uint8))
    expected = torch.tensor([e4m3(byte) for byte in range(256)])
    assert torch.equal(told.isnan(), expected.isnan())
    assert torch.equal(told.nan_to_num(0), expected.nan_to_num(0))


@settings(deadline=None)
@given(st.lists(floats32, min_size=1, max_size=40))
def test_fp8_has_the_scale_of_its_largest_number(row):
    x = torch.tensor([row])
    codes, scale = fp8_quantise(x, -1)
    assert (codes.dtype, scale.dtype, scale.shape) == (torch.float8_e4m3fn, torch.float32, (1, 1))
    assert scale.item() == (x.abs().max() / 448).item()
    for value, code in zip(row, codes[0].float().tolist(), strict=True):
        scaled = torch.tensor(value) / (scale.item() or 1.0)
        assert code == nearest_e4m3(scaled.item())


@settings(deadline=None)
@given(st.lists(st.floats(2.0**-90, 2.0**90, width=32), min_size=2, max_size=40))
def test_fp8_comes_back_within_a_sixteenth_or_a_step_of_the_smallest(row):
    codes, scale = fp8_quantise(torch.tensor(row), 0)
    back = (codes.float() * scale).tolist()
    for value, told in zip(row, back, strict=True):
        assert abs(value - told) <= max(value / 16, scale.item() * 2.0**-10) * (1 + 1e-6)


def test_fp8_scales_each_slice_along_the_axis_that_it_is_told():
    x = torch.tensor([[448.0, 1.0], [4.48, 0.0], [NAN, 1.0], [INF, 1.0], [0.0, 0.0]])
    codes, scale = fp8_quantise(x, -1)
    back = codes.float() * scale
    assert back[:2].tolist() == [[448.0, 1.0], [pytest.approx(4.48), 0.0]]
    assert back[2:4].isnan().all()
    assert (scale[4].item(), back[4].tolist()) == (0.0, [0.0, 0.0])
    assert fp8_quantise(x[:2], 0)[1].tolist() == [[1.0, pytest.approx(1 / 448)]]


def test_saturating_e4m3_keeps_one_byte_a_number():
    assert saturating_e4m3(torch.ones(3, dtype=torch.float64)).element_size() == 1
