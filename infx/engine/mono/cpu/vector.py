# mypy: ignore-errors
"""Inner loops as vectors: sums of products in exactly the order that the table gives.

Written as LLVM's own vector operations, since a compiler left to itself must not reorder a sum, and
so keeps a dot product scalar. Nothing here is contracted to fused multiply-adds: every operation is
the one that the interpreter does (`infx.engine.mono.arithmetic`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.np import arrayobj

from infx.engine.mono.sums import Sum

__all__ = ["adding_of", "bits", "dot_of", "inner", "number", "power_of_two", "product_of"]

# AVX2 has 16 registers of 8 floats: 12 hold sums, the rest weights and a row's number.
WIDEST = 8
ACCUMULATORS = 12
MOST_AT_ONCE = 4
L1_WEIGHTS = 1536  # floats: 6 KiB, of all rows' passes over a piece of a tile

# Called by compiled code only: the two wrappers for other callers took half of the compile time.
inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

_FLOAT, _INT, _WORD = ir.FloatType(), ir.IntType(32), ir.IntType(64)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return the address of an array's number ``index``."""
    data = arrayobj.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def _load(builder: Any, address: Any, width: int) -> Any:
    """Return ``width`` numbers at ``address``, at no alignment but a float's."""
    wanted = ir.VectorType(_FLOAT, width).as_pointer()
    return builder.load(builder.bitcast(address, wanted), align=4)


def _store(builder: Any, vector: Any, address: Any) -> None:
    builder.store(vector, builder.bitcast(address, vector.type.as_pointer()), align=4)


def _spread(builder: Any, one: Any, width: int) -> Any:
    """Return a vector of ``width`` times ``one``."""
    kind = ir.VectorType(_FLOAT, width)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), one, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)


def _accumulate_of(rows: int, vectors: int, width: int, stride: int) -> Any:
    """Return f(x, starts, count, w, at, sums, to): sums[r] += Σ x[starts[r] + k] w[at + k stride].

    ``rows`` x ``vectors`` sums of ``width`` stay in registers; k ascends. Rows of ``sums`` are
    ``stride`` apart, as those of ``w``.
    """

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        x, starts, count, w, at, sums, to = args
        kinds = signature.args
        step = ir.Constant(_WORD, stride)
        inputs = [
            _place(context, builder, kinds[0], x, builder.extract_value(starts, row))
            for row in range(rows)
        ]
        weights = _place(context, builder, kinds[3], w, at)
        base = _place(context, builder, kinds[5], sums, to)
        outputs = [
            builder.gep(base, [ir.Constant(_WORD, row * stride + v * width)])
            for row in range(rows)
            for v in range(vectors)
        ]
        before = [_load(builder, address, width) for address in outputs]
        entry = builder.block
        loop, end = builder.append_basic_block("loop"), builder.append_basic_block("end")
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(_WORD)
        k.add_incoming(ir.Constant(_WORD, 0), entry)
        held = [builder.phi(first.type) for first in before]
        for phi, first in zip(held, before, strict=True):
            phi.add_incoming(first, entry)
        here = builder.gep(weights, [builder.mul(k, step)])
        taken = [
            _load(builder, builder.gep(here, [ir.Constant(_WORD, v * width)]), width)
            for v in range(vectors)
        ]
        after = []
        for row in range(rows):
            one = builder.load(builder.gep(inputs[row], [k]), align=4)
            many = _spread(builder, one, width)
            for v in range(vectors):
                term = builder.fmul(many, taken[v])
                after.append(builder.fadd(held[row * vectors + v], term))
        following = builder.add(k, ir.Constant(_WORD, 1))
        k.add_incoming(following, loop)
        for phi, last in zip(held, after, strict=True):
            phi.add_incoming(last, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, end)
        builder.position_at_end(end)
        for last, address in zip(after, outputs, strict=True):
            _store(builder, last, address)
        return context.get_dummy_value()

    @intrinsic
    def accumulate(
        typing: Any, x: Any, starts: Any, count: Any, w: Any, at: Any, sums: Any, to: Any
    ) -> Any:
        whole = types.int64
        given = (x, types.UniTuple(whole, rows), whole, w, whole, sums, whole)
        return types.void(*given), generate

    return accumulate


def _widths(tile: int) -> tuple[int, int]:
    """Return the numbers of a vector, and the vectors, that make up ``tile``."""
    width = next(size for size in (WIDEST, 4, 2, 1) if tile % size == 0)
    return width, tile // width


def _rows_of(rows: int, tile: int) -> tuple[Any, int]:
    """Return the `_accumulate_of` that suits ``rows`` rows of a tile, and the outputs it does."""
    width, count = _widths(tile)
    vectors = next(n for n in range(ACCUMULATORS // rows, 0, -1) if count % n == 0)
    return _accumulate_of(rows, vectors, width, tile), vectors * width


def product_of(total: Sum, tile: int) -> Callable[..., None]:
    """Return f(x, starts, rows, w, at, sums, to): sums [rows, tile] = x @ w in ``total``'s order.

    Row r's inputs lie at x[starts[r]] and after, the weights [inputs, tile] at w[at], the sums at
    sums[to]. Raises ValueError for an order that this back end does not do.
    """
    if total.dealt_by != ("chunk",) or total.merged_by != "lane":
        raise ValueError(
            f"sum {total.name} is dealt by {total.dealt_by} and merged by {total.merged_by}: the"
            " CPU back end deals matrices' terms by chunk and merges lanes in order"
        )
    some = _all_rows(tile)
    if total.lanes == 1:
        return _one_lane(some, total.extent, tile)
    return _many_lanes(some, total, tile)


def adding_of(total: Sum, tile: int) -> Any:
    """Return f(x, starts, rows, first, count, w, at, sums, to) that adds some of the terms.

    sums [rows, tile] += Σ x[starts[r] + first + k] w[at + k tile] of ``count`` terms, ascending.
    Raises ValueError for a sum of several lanes.
    """
    if total.lanes != 1 or total.dealt_by != ("chunk",):
        raise ValueError(f"sum {total.name} has {total.lanes} lanes: a running sum has one")
    return _all_rows(tile)


def _all_rows(tile: int) -> Any:
    """Return f(x, starts, rows, skip, count, w, at, sums, to): any number of rows, four at once."""
    at_once = max(1, L1_WEIGHTS // tile)
    (one, by_one), (two, by_two) = _rows_of(1, tile), _rows_of(2, tile)
    (three, by_three), (four, by_four) = _rows_of(3, tile), _rows_of(MOST_AT_ONCE, tile)

    @inner
    def some(x, starts, rows, skip, count, w, at, sums, to):
        # Weights of a few k stay in L1 for all rows: without this four rows at once were slower
        # than one by one, each pass over a tile fetching it from L2 or L3 again.
        for first in range(0, count, at_once):
            terms, here, far = min(at_once, count - first), at + first * tile, skip + first
            i = 0
            while rows - i >= 4:
                a, b = starts[i] + far, starts[i + 1] + far
                c, d = starts[i + 2] + far, starts[i + 3] + far
                for v in range(0, tile, by_four):
                    four(x, (a, b, c, d), terms, w, here + v, sums, to + i * tile + v)
                i += 4
            left = rows - i
            if left == 3:
                a, b, c = starts[i] + far, starts[i + 1] + far, starts[i + 2] + far
                for v in range(0, tile, by_three):
                    three(x, (a, b, c), terms, w, here + v, sums, to + i * tile + v)
            elif left == 2:
                a, b = starts[i] + far, starts[i + 1] + far
                for v in range(0, tile, by_two):
                    two(x, (a, b), terms, w, here + v, sums, to + i * tile + v)
            elif left == 1:
                a = starts[i] + far
                for v in range(0, tile, by_one):
                    one(x, (a,), terms, w, here + v, sums, to + i * tile + v)

    return some


def _one_lane(some: Any, extent: int, tile: int) -> Callable[..., None]:
    @inner
    def product(x, starts, rows, w, at, sums, to):
        sums[to : to + rows * tile] = 0
        some(x, starts, rows, 0, extent, w, at, sums, to)

    return product


def _many_lanes(some: Any, total: Sum, tile: int) -> Callable[..., None]:
    """Return the product with several accumulators: for grains that no CPU is given but tests."""
    extent, chunk, lanes = total.extent, total.chunk, total.lanes

    @inner
    def product(x, starts, rows, w, at, sums, to):
        size = rows * tile
        lane_sums = sums[to + size : to + 2 * size]
        for lane in range(lanes):
            lane_sums[:] = 0
            for first in range(lane * chunk, extent, lanes * chunk):
                count = min(chunk, extent - first)
                some(x, starts, rows, first, count, w, at + first * tile, lane_sums, 0)
            if lane == 0:
                sums[to : to + size] = lane_sums
            else:
                for i in range(size):
                    sums[to + i] += lane_sums[i]

    return product


def dot_of(total: Sum) -> Any:
    """Return f(a, i, b, j) = Σ a[i + k] b[j + k] in ``total``'s order: lanes along the vector.

    Raises ValueError for an order other than single terms dealt in turn and merged by halving.
    """
    lanes, extent = total.lanes, total.extent
    if total.chunk != 1 or total.dealt_by != ("chunk",) or total.merged_by != "halving":
        raise ValueError(
            f"sum {total.name} has chunks of {total.chunk} merged by {total.merged_by}: the CPU"
            " back end's dots deal single terms and merge by halving"
        )

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        a = _place(context, builder, signature.args[0], args[0], args[1])
        b = _place(context, builder, signature.args[2], args[2], args[3])
        held = ir.Constant(ir.VectorType(_FLOAT, lanes), [0.0] * lanes)
        for first in range(0, extent, lanes):
            term = _products(builder, a, b, first, min(lanes, extent - first), lanes)
            held = builder.fadd(held, term)
        return _halved(builder, held, lanes)

    @intrinsic
    def dot(typing: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        return types.float32(a, types.int64, b, types.int64), generate

    return dot


def _products(builder: Any, a: Any, b: Any, first: int, count: int, lanes: int) -> Any:
    """Return ``lanes`` products from ``first`` on, 0 (which changes no lane) after ``count``."""
    i, j = (builder.gep(address, [ir.Constant(_WORD, first)]) for address in (a, b))
    if count == lanes:
        return builder.fmul(_load(builder, i, lanes), _load(builder, j, lanes))
    term = ir.Constant(ir.VectorType(_FLOAT, lanes), [0.0] * lanes)
    for k in range(count):
        at = ir.Constant(_WORD, k)
        left, right = (builder.load(builder.gep(address, [at])) for address in (i, j))
        term = builder.insert_element(term, builder.fmul(left, right), ir.Constant(_INT, k))
    return term


def _halved(builder: Any, held: Any, lanes: int) -> Any:
    while lanes > 1:
        lanes //= 2
        halves = (
            ir.Constant(ir.VectorType(_INT, lanes), list(range(first, first + lanes)))
            for first in (0, lanes)
        )
        low, high = (builder.shuffle_vector(held, held, half) for half in halves)
        held = builder.fadd(low, high)
    return builder.extract_element(held, ir.Constant(_INT, 0))


@intrinsic
def bits(typing: Any, x: Any) -> Any:
    """Return the bits of a float32 as int32."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return builder.bitcast(args[0], _INT)

    return types.int32(types.float32), generate


@intrinsic
def number(typing: Any, x: Any) -> Any:
    """Return the float32 that has the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return builder.bitcast(args[0], _FLOAT)

    return types.float32(types.int32), generate


@intrinsic
def power_of_two(typing: Any, shifted: Any) -> Any:
    """Return 2^n of n >= -1022 given as the float64 n + 1.5 x 2^52, whose low bits are n's."""

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        raw = builder.shl(builder.bitcast(args[0], _WORD), ir.Constant(_WORD, 52))
        one = ir.Constant(_WORD, 1023 << 52)
        return builder.bitcast(builder.add(raw, one), ir.DoubleType())

    return types.float64(types.float64), generate
