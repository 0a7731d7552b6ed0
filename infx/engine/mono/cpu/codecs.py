# mypy: ignore-errors
"""Cache formats, compiled: vectors into a cache's own tensors, and pages of them out again.

A format is ``put(x, data, scale, row)``, which writes the vector of ``dim`` numbers at x as the
cache's vector number ``row``, and ``get(data, scale, row, count, local)``, which returns where
``count`` float32 vectors from number ``row`` on are: in the cache itself where it holds float32,
else at ``local``. Bits are those of `infx.engine.mono.formats`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infx.engine.mono.cpu.bits import bits, number
from infx.engine.mono.cpu.inner import inner
from infx.engine.mono.cpu.pointers import ahead

__all__ = ["codec_of", "e4m3_rounded"]

_GROUP = 32
_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=np.float32)
_E2M1_SIGNED = np.concatenate([_E2M1, -_E2M1])
_TINY = np.float32(2.0**-120)
_HUGE = np.float32(2.0**120)


@inner
def _e4m3_code(x):
    """Return the e4m3 byte nearest to ``x``, ties to even, beyond 448 to 448; NaN is 0x7F."""
    raw = bits(x)
    sign = np.int32((raw >> 24) & 0x80)
    size = np.int32(raw & 0x7FFFFFFF)
    if size > 0x7F800000:
        return np.int32(0x7F)
    magnitude = number(size)
    if magnitude >= np.float32(448.0):
        return np.int32(sign | 0x7E)
    if magnitude < np.float32(2.0**-6):
        # Codes of subnormals count units of 2^-9; 8 of them are the least normal number.
        return np.int32(sign | np.int32(np.rint(magnitude * np.float32(512.0))))
    rounded = np.int32(size + 0x7FFFF + ((size >> 20) & 1))
    return np.int32(sign | np.int32((rounded >> 20) - ((127 - 7) << 3)))


@inner
def _e4m3_number(code):
    """Return the number of an e4m3 byte: its bits in float32's places, times 2^120."""
    small = np.int32(code) & np.int32(0x7F)
    raw = np.int32((small << 20) | ((np.int32(code) & np.int32(0x80)) << 24))
    value = np.float32(number(raw) * _HUGE)
    return np.float32(np.nan) if small == np.int32(0x7F) else value


@inner
def e4m3_rounded(x):
    """Return ``x`` as e4m3 holds it."""
    return _e4m3_number(_e4m3_code(x))


def codec_of(kind: str, dim: int) -> tuple[Any, Any]:
    """Return put and get of ``kind``: fp32, bf16, fp8, fp8-scaled or mxfp4."""
    makers = {
        "fp32": _fp32,
        "bf16": _bf16,
        "fp8": _fp8,
        "fp8-scaled": _fp8_scaled,
        "mxfp4": _mxfp4,
    }
    return makers[kind](dim)


def _fp32(dim: int) -> tuple[Any, Any]:
    @inner
    def put(x, data, scale, row):
        for i in range(dim):
            data[row * dim + i] = x[i]

    @inner
    def get(data, scale, row, count, local):
        return ahead(data, row * dim)

    return put, get


def _bf16(dim: int) -> tuple[Any, Any]:
    @inner
    def put(x, data, scale, row):
        for i in range(dim):
            raw = np.int64(bits(x[i])) & 0xFFFFFFFF
            rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
            nan = (raw & 0x7FFFFFFF) > 0x7F800000
            data[row * dim + i] = np.uint16(0x7FC0 if nan else rounded & 0xFFFF)

    @inner
    def get(data, scale, row, count, local):
        codes = ahead(data, row * dim)
        for i in range(count * dim):
            local[i] = number(np.int32(np.int32(codes[i]) << 16))
        return local

    return put, get


def _fp8(dim: int) -> tuple[Any, Any]:
    @inner
    def put(x, data, scale, row):
        for i in range(dim):
            data[row * dim + i] = np.uint8(_e4m3_code(x[i]))

    @inner
    def get(data, scale, row, count, local):
        codes = ahead(data, row * dim)
        for i in range(count * dim):
            local[i] = _e4m3_number(codes[i])
        return local

    return put, get


def _fp8_scaled(dim: int) -> tuple[Any, Any]:
    @inner
    def put(x, data, scale, row):
        largest, finite = np.float32(0), True
        for i in range(dim):
            size = abs(x[i])
            finite = finite and math.isfinite(size)
            largest = max(largest, size)
        one = np.float32(largest / np.float32(448.0)) if finite else np.float32(np.nan)
        divisor = np.float32(1) if one == np.float32(0) else one
        for i in range(dim):
            data[row * dim + i] = np.uint8(_e4m3_code(np.float32(x[i] / divisor)))
        scale[row] = one

    @inner
    def get(data, scale, row, count, local):
        for vector in range(count):
            one = scale[row + vector]
            codes, numbers = ahead(data, (row + vector) * dim), ahead(local, vector * dim)
            for i in range(dim):
                numbers[i] = np.float32(one * _e4m3_number(codes[i]))
        return local

    return put, get


@inner
def _e2m1_code(size):
    """Return the code nearest to a magnitude, ties to the even code."""
    code = 0
    for upper in range(1, 8):
        middle = np.float32((_E2M1[upper - 1] + _E2M1[upper]) * np.float32(0.5))
        # An even upper code takes the tie.
        if size > middle or (size == middle and upper % 2 == 0):
            code = upper
    return code


@inner
def _group_codes(x, exponent, codes):
    """Fill ``codes`` with the magnitudes' and return the sum of squared errors, halves added."""
    scale = np.float32(2.0 ** (exponent - 127))
    squares = np.empty(_GROUP, np.float32)
    for i in range(_GROUP):
        size = abs(x[i])
        codes[i] = _e2m1_code(np.float32(size / scale))
        error = np.float32(np.float32(_E2M1[codes[i]] * scale) - size)
        squares[i] = np.float32(error * error)
    half = _GROUP
    while half > 1:
        half //= 2
        for i in range(half):
            squares[i] = np.float32(squares[i] + squares[i + half])
    return squares[0]


@inner
def _put_group(x, data):
    """Write the 16 bytes of a group of 32; return its e8m0 byte."""
    largest, finite = _TINY, True
    for i in range(_GROUP):
        size = abs(x[i])
        finite = finite and math.isfinite(size)
        largest = max(largest, size)
    if not finite:
        for i in range(_GROUP // 2):
            data[i] = 0
        return 255
    lower = ((bits(largest) >> 23) & 0xFF) - 2
    codes, others = np.empty(_GROUP, np.int64), np.empty(_GROUP, np.int64)
    chosen = lower
    error = _group_codes(x, lower, codes)
    if _group_codes(x, lower + 1, others) < error:
        codes, chosen = others, lower + 1
    for i in range(0, _GROUP, 2):
        low = codes[i] | (8 if bits(x[i]) < 0 else 0)
        high = codes[i + 1] | (8 if bits(x[i + 1]) < 0 else 0)
        data[i // 2] = np.uint8(low | high << 4)
    return chosen


def _mxfp4(dim: int) -> tuple[Any, Any]:
    groups = dim // _GROUP

    @inner
    def put(x, data, scale, row):
        for group in range(groups):
            to = row * (dim // 2) + group * (_GROUP // 2)
            byte = _put_group(ahead(x, group * _GROUP), ahead(data, to))
            scale[row * groups + group] = np.uint8(byte)

    @inner
    def get(data, scale, row, count, local):
        for group in range(row * groups, (row + count) * groups):
            byte = np.int32(scale[group])
            # Byte 0 is 2^-127, which float32 holds only without its leading bit.
            factor = number(np.int32(byte << 23 if byte > 0 else 1 << 22))
            if byte == 255:
                factor = np.float32(np.nan)
            numbers = ahead(local, (group - row * groups) * _GROUP)
            pairs = ahead(data, group * (_GROUP // 2))
            for i in range(_GROUP // 2):
                numbers[2 * i] = np.float32(_E2M1_SIGNED[pairs[i] & 15] * factor)
                numbers[2 * i + 1] = np.float32(_E2M1_SIGNED[pairs[i] >> 4] * factor)
        return local

    return put, get
