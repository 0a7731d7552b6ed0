"""Cache formats in plain Python: vectors to bytes and back.

The definitions are those of `infx.engine.quant`; they are written a second time because an oracle
that shares code with what it judges shares its faults. A vector is encoded alone.
"""

from __future__ import annotations

import bisect
import functools
import math
import struct
from collections.abc import Sequence

from infx.engine.mono.arithmetic import Vector, f32, plus, scaled, times, vector

__all__ = ["decode", "e4m3", "encode"]

_GROUP = 32
_NAN_BYTE = 0x7F
_E8M0_NAN = 255


def _e4m3_value(code: int) -> float:
    exponent, mantissa = code >> 3, code & 7
    return math.ldexp(mantissa + 8, exponent - 10) if exponent else math.ldexp(mantissa, -9)


# Magnitudes by code: 127 of e4m3 (0x7F is NaN), 8 of e2m1.
_E4M3 = [_e4m3_value(code) for code in range(127)]
_E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def encode(kind: str, numbers: Sequence[float]) -> bytes:
    """Return ``numbers`` as ``kind`` keeps them: fp32, bf16, fp8, fp8-scaled or mxfp4.

    fp8-scaled is e4m3 codes and a float32 scale amax / 448; mxfp4 codes, then a scale a group.
    """
    x = vector(numbers)
    if kind == "fp32":
        return x.tobytes()
    if kind == "bf16":
        return b"".join(_bf16(number) for number in x)
    if kind == "fp8":
        return bytes(map(_e4m3_code, x))
    if kind == "fp8-scaled":
        scale = f32(max(map(abs, x)) / 448) if all(map(math.isfinite, x)) else math.nan
        return bytes(_e4m3_code(f32(n / (scale or 1.0))) for n in x) + struct.pack("<f", scale)
    groups = [_mxfp4_group(x[i : i + _GROUP]) for i in range(0, len(x), _GROUP)]
    return b"".join(data for data, _ in groups) + bytes(scale for _, scale in groups)


@functools.lru_cache(maxsize=1 << 14)
def decode(kind: str, data: bytes) -> tuple[float, ...]:
    """Return the float32 numbers that ``data`` stands for."""
    if kind == "fp32":
        return struct.unpack(f"<{len(data) // 4}f", data)
    if kind == "bf16":
        wide = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
        return struct.unpack(f"<{len(data) // 2}f", wide)
    if kind == "fp8":
        return tuple(map(_e4m3_number, data))
    if kind == "fp8-scaled":
        (scale,) = struct.unpack("<f", data[-4:])
        return tuple(scaled(scale, [_e4m3_number(code) for code in data[:-4]]))
    return _mxfp4_numbers(data)


def e4m3(numbers: Sequence[float]) -> tuple[float, ...]:
    """Return ``numbers`` as e4m3 holds them: beyond ±448 to ±448, NaN to NaN."""
    return decode("fp8", encode("fp8", numbers))


def _bf16(number: float) -> bytes:
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    if math.isnan(number):
        return b"\xc0\x7f"
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


def _nearest(grid: list[float], size: float) -> int:
    """Return the code of the magnitude nearest to ``size``, ties to the even code."""
    upper = min(bisect.bisect_left(grid, size), len(grid) - 1)
    lower = max(upper - 1, 0)
    above, below = abs(grid[upper] - size), abs(size - grid[lower])
    if above == below:
        return lower if lower % 2 == 0 else upper
    return upper if above < below else lower


def _e4m3_code(number: float) -> int:
    if math.isnan(number):
        return _NAN_BYTE
    return _nearest(_E4M3, min(abs(number), 448.0)) | 0x80 * _negative(number)


def _negative(number: float) -> bool:
    """Return the sign bit: zeros have one."""
    return math.copysign(1, number) < 0


def _e4m3_number(code: int) -> float:
    if code & 0x7F == _NAN_BYTE:
        return math.nan
    return -_E4M3[code & 0x7F] if code & 0x80 else _E4M3[code]


def _mxfp4_group(x: Vector[float]) -> tuple[bytes, int]:
    """Return 16 bytes of codes and the e8m0 byte: the exponent with the smaller squared error."""
    if not all(map(math.isfinite, x)):
        return bytes(_GROUP // 2), _E8M0_NAN
    largest = max(*map(abs, x), 2.0**-120)
    lower = math.frexp(largest)[1] - 1 - 2 + 127
    tried = [_mxfp4_codes(x, exponent) for exponent in (lower, lower + 1)]
    chosen = 1 if tried[1][1] < tried[0][1] else 0
    signed = [code | 8 * _negative(n) for code, n in zip(tried[chosen][0], x, strict=True)]
    pairs = zip(signed[0::2], signed[1::2], strict=True)
    return bytes(low | high << 4 for low, high in pairs), lower + chosen


def _mxfp4_codes(x: Vector[float], exponent: int) -> tuple[list[int], float]:
    scale = 2.0 ** (exponent - 127)
    codes = [_nearest(_E2M1, f32(abs(n) / scale)) for n in x]
    errors = vector([f32(_E2M1[c] * scale) - abs(n) for c, n in zip(codes, x, strict=True)])
    squares = times(errors, errors)
    while len(squares) > 1:
        half = len(squares) // 2
        squares = plus(squares[:half], squares[half:])
    return codes, squares[0]


def _mxfp4_numbers(data: bytes) -> tuple[float, ...]:
    groups = len(data) // (_GROUP // 2 + 1)
    codes = [code for byte in data[:-groups] for code in (byte & 15, byte >> 4)]
    numbers = []
    for i, code in enumerate(codes):
        byte = data[len(data) - groups + i // _GROUP]
        size = _E2M1[code & 7] * 2.0 ** (byte - 127) if byte != _E8M0_NAN else math.nan
        numbers.append(-size if code & 8 else size)
    return tuple(numbers)
