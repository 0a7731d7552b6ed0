# mypy: ignore-errors
"""Numbers as bits and back, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing import Signature
from numba.extending import intrinsic

__all__ = ["bits", "number", "power_of_two"]

_WORD = ir.IntType(64)


@intrinsic
def bits(typing: Any, x: Any) -> Any:
    """Return the bits of a float32 as int32."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def number(typing: Any, x: Any) -> Any:
    """Return the float32 that has the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def power_of_two(typing: Any, shifted: Any) -> Any:
    """Return 2^n of n >= -1022 given as the float64 n + 1.5 x 2^52, whose low bits are n's."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        raw = builder.shl(builder.bitcast(args[0], _WORD), ir.Constant(_WORD, 52))
        return builder.bitcast(builder.add(raw, ir.Constant(_WORD, 1023 << 52)), ir.DoubleType())

    return types.float64(types.float64), generate
