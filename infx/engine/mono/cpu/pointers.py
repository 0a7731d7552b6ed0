# mypy: ignore-errors
"""Memory as kernels see it: addresses, without the bounds, strides and counts of numpy's arrays.

A call of a layer is one number, the address of a block of int64: the addresses of its arrays in the
order of `ARGUMENTS`. So a call from Python costs one argument, a kernel holds no reference counts,
and a step that is run again finds everything at the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing import Signature
from numba.extending import intrinsic

__all__ = [
    "ARGUMENTS",
    "ahead",
    "bytes_at",
    "floats_at",
    "halves_at",
    "int32s_at",
    "int64s_at",
]

# The streams first: `rows.point` writes them. ``values`` and ``value_scales`` are where the values
# begin in the array of keys and values.
ARGUMENTS = (
    "stream_in", "stream_out", "step", "ints", "turn", "weights", "scratch", "routing",
    "keys", "key_scales", "values", "value_scales", "index", "index_scales",
)  # fmt: skip

_WORD = ir.IntType(64)


def _reader(kind: Any) -> Any:
    @intrinsic
    def taken(typing: Any, call: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
            block = builder.inttoptr(args[0], _WORD.as_pointer())
            address = builder.load(builder.gep(block, [args[1]]))
            return builder.inttoptr(address, context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64, types.int64), generate

    return taken


# Each is f(call, number): argument ``number`` of a call's block as a pointer.
floats_at, int32s_at, int64s_at = map(_reader, (types.float32, types.int32, types.int64))
halves_at, bytes_at = map(_reader, (types.uint16, types.uint8))


@intrinsic
def ahead(typing: Any, pointer: Any, count: Any) -> Any:
    """Return the pointer ``count`` elements on."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), generate
