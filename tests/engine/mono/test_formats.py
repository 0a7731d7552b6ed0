"""Formats in plain Python against the engine's own: every bit."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine import quant
from infx.engine.mono.formats import decode, e4m3, encode

KINDS = ("fp32", "bf16", "fp8", "fp8-scaled", "mxfp4")
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6)
VECTORS = st.lists(FLOATS, min_size=32, max_size=32)


def of_torch(kind: str, numbers: Sequence[float]) -> bytes:
    x = torch.tensor(numbers)
    if kind == "mxfp4":
        return b"".join(part.numpy().tobytes() for part in quant.mxfp4_pack(x))
    if kind == "fp8-scaled":
        codes, scale = quant.fp8_quantise(x, -1)
        return codes.view(torch.uint8).numpy().tobytes() + scale.numpy().tobytes()
    if kind == "fp8":
        return quant.saturating_e4m3(x).view(torch.uint8).numpy().tobytes()
    return (x if kind == "fp32" else x.bfloat16().view(torch.int16)).numpy().tobytes()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(numbers=VECTORS)
def test_bytes_are_those_of_the_engine(kind: str, numbers: list[float]) -> None:
    assert encode(kind, numbers) == of_torch(kind, numbers)


@pytest.mark.parametrize("kind", KINDS)
def test_magnitudes_of_every_size_and_ties(kind: str) -> None:
    steps = [i / 16 for i in range(-128, 128)] + [2.0**e for e in range(-20, 12)]
    for i in range(0, len(steps), 32):
        assert encode(kind, steps[i : i + 32]) == of_torch(kind, steps[i : i + 32])


@pytest.mark.parametrize("kind", KINDS)
def test_a_zero_vector_is_kept(kind: str) -> None:
    assert decode(kind, encode(kind, [0.0] * 32)) == (0.0,) * 32


def test_what_is_kept_reads_as_the_engine_reads_it() -> None:
    numbers = [math.sin(i) * 3 for i in range(64)]
    data, scale = quant.mxfp4_pack(torch.tensor(numbers))
    assert decode("mxfp4", encode("mxfp4", numbers)) == tuple(
        quant.mxfp4_unpack(data, scale).tolist()
    )
    wide = tuple(torch.tensor(numbers).bfloat16().float().tolist())
    assert decode("bf16", encode("bf16", numbers)) == wide


def test_a_query_saturates_and_keeps_its_nan() -> None:
    large, small, lost = e4m3([1e4, -500.0, math.nan])
    assert (large, small) == (448.0, -448.0)
    assert math.isnan(lost)


@pytest.mark.parametrize("kind", ["fp8-scaled", "mxfp4"])
def test_a_nan_makes_its_vector_nan(kind: str) -> None:
    numbers = decode(kind, encode(kind, [1.0] * 31 + [math.nan]))
    assert all(map(math.isnan, numbers))


def test_a_bf16_tie_goes_to_the_even_number() -> None:
    (tie,) = struct.unpack("<f", struct.pack("<I", 0x3F808000))
    assert decode("bf16", encode("bf16", [tie])) == (1.0,)
