# mypy: ignore-errors
"""Inner loops as vectors: sums of products in exactly the order that the table gives.

Written as LLVM's own vector operations, since a compiler left to itself must not reorder a sum, and
so keeps a dot product scalar. Nothing here is contracted to fused multiply-adds: every operation is
the one that the interpreter does (`infx.engine.mono.arithmetic`).

A matrix lies in panels: [panel][inputs][outputs of the panel]. A panel is as wide as four rows can
hold sums of in registers, so that each pass reads whole lines in their order; one row alone reads
several panels side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing import Signature
from numba.extending import intrinsic

from infx.engine.mono.cpu.inner import inner, owner
from infx.engine.mono.cpu.pointers import ahead
from infx.engine.mono.sums import Sum

__all__ = [
    "adding_of", "dot_of", "dots_of", "panel_of", "product_of",
]  # fmt: skip

# AVX2 has 16 registers of 8 floats: 12 hold sums, the rest weights and a row's number.
WIDEST = 8
ACCUMULATORS = 12
MOST_AT_ONCE = 4
L1_WEIGHTS = 4608  # floats: 18 KiB of a panel stay in L1 for all rows

_FLOAT, _INT, _WORD = ir.FloatType(), ir.IntType(32), ir.IntType(64)


def _word(value: int) -> Any:
    return ir.Constant(_WORD, value)


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


@functools.cache
def _accumulate_of(rows: int, panels: int, vectors: int, width: int, stride: int) -> Any:
    """Return f(x, starts, count, w, apart, out, outs, fresh) of sums that stay in registers.

    out[outs[r] + v] = (0 if fresh, else itself) + Σ x[starts[r] + k] w[k stride + v], k ascending,
    for ``vectors`` vectors of ``width`` outputs v in each of ``panels`` panels, ``apart`` floats
    apart in w and ``stride`` in out.
    """
    sums = [(row, p, v) for row in range(rows) for p in range(panels) for v in range(vectors)]

    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        x, starts, count, w, apart, out, outs, fresh = args
        inputs = [builder.gep(x, [builder.extract_value(starts, row)]) for row in range(rows)]
        bases = [builder.gep(out, [builder.extract_value(outs, row)]) for row in range(rows)]
        weights = [builder.gep(w, [builder.mul(apart, _word(p))]) for p in range(panels)]
        outputs = [builder.gep(bases[row], [_word(p * stride + v * width)]) for row, p, v in sums]
        zero = ir.Constant(ir.VectorType(_FLOAT, width), [0.0] * width)
        before = [builder.select(fresh, zero, _load(builder, at, width)) for at in outputs]

        def plus_terms(k: Any, held: Sequence[Any]) -> list[Any]:
            line = builder.mul(k, _word(stride))
            lines = [builder.gep(place, [line]) for place in weights]
            taken = {
                (p, v): _load(builder, builder.gep(lines[p], [_word(v * width)]), width)
                for p in range(panels)
                for v in range(vectors)
            }
            terms = [builder.load(builder.gep(place, [k]), align=4) for place in inputs]
            many = [_spread(builder, term, width) for term in terms]
            return [
                builder.fadd(total, builder.fmul(many[row], taken[p, v]))
                for total, (row, p, v) in zip(held, sums, strict=True)
            ]

        for last, address in zip(_looped(builder, count, before, plus_terms), outputs, strict=True):
            _store(builder, last, address)
        return context.get_dummy_value()

    @intrinsic
    def accumulate(
        typing: Any, x: Any, starts: Any, count: Any, w: Any, apart: Any, out: Any, outs: Any,
        fresh: Any,
    ) -> Any:  # fmt: skip
        whole = types.int64
        places = types.UniTuple(whole, rows)
        return types.void(x, places, whole, w, whole, out, places, types.boolean), generate

    return accumulate


def _looped(
    builder: Any, count: Any, before: Sequence[Any], following: Callable[..., list[Any]]
) -> list[Any]:
    """Return ``before`` after ``following(k, values)`` for k = 0 ... count - 1, at least once."""
    entry = builder.block
    loop, end = builder.append_basic_block("loop"), builder.append_basic_block("end")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_WORD)
    k.add_incoming(_word(0), entry)
    held = [builder.phi(first.type) for first in before]
    for phi, first in zip(held, before, strict=True):
        phi.add_incoming(first, entry)
    after = following(k, held)
    higher = builder.add(k, _word(1))
    k.add_incoming(higher, loop)
    for phi, last in zip(held, after, strict=True):
        phi.add_incoming(last, loop)
    builder.cbranch(builder.icmp_signed("<", higher, count), loop, end)
    builder.position_at_end(end)
    return after


def _widths(outputs: int) -> tuple[int, int]:
    """Return the numbers of a vector, and the vectors, that make up ``outputs``."""
    width = next(size for size in (WIDEST, 4, 2, 1) if outputs % size == 0)
    return width, outputs // width


def _divisor(number: int, most: int) -> int:
    return next(n for n in range(most, 0, -1) if number % n == 0)


def panel_of(outputs: int) -> int:
    """Return the outputs of a panel of a matrix of so many: at most three vectors."""
    width, count = _widths(outputs)
    return width * _divisor(count, ACCUMULATORS // MOST_AT_ONCE)


def _check(total: Sum) -> None:
    if total.lanes != 1 or total.dealt_by != ("chunk",) or total.merged_by != "lane":
        raise ValueError(
            f"sum {total.name} is dealt by {total.dealt_by} to {total.lanes} lanes merged by"
            f" {total.merged_by}: the CPU back end adds a matrix's terms one by one"
        )


def product_of(total: Sum, outputs: int) -> Callable[..., None]:
    """Return f(x, starts, rows, w, out, outs): out[outs[r] + n] = Σ x[starts[r] + k] w[k][n].

    The weights of ``outputs`` outputs lie at w in panels. Raises ValueError for an order that this
    back end does not do.
    """
    _check(total)
    extent, panel = total.extent, panel_of(outputs)
    some = _product(owner(), panel, _divisor(outputs // panel, ACCUMULATORS * WIDEST // panel))

    @inner
    def product(x, starts, rows, w, out, outs):
        some(x, starts, rows, w, out, outs, extent, outputs)

    return product


@functools.cache
def _product(build: str, panel: int, side_by_side: int) -> Any:
    """Return the product for all sizes that have such panels: compiled once a build."""
    width, vectors = _widths(panel)
    one = _accumulate_of(1, side_by_side, vectors, width, panel)
    two, three, four = (_accumulate_of(rows, 1, vectors, width, panel) for rows in (2, 3, 4))
    at_once = max(1, L1_WEIGHTS // panel)

    @inner
    def some(x, starts, rows, w, out, outs, extent, outputs):
        size = extent * panel
        if rows == 1:
            for n in range(0, outputs, side_by_side * panel):
                one(x, (starts[0],), extent, ahead(w, n * extent), size, out, (outs[0] + n,), True)
            return
        for n in range(0, outputs, panel):
            for k in range(0, extent, at_once):
                here, terms = ahead(w, n * extent + k * panel), min(at_once, extent - k)
                fresh = k == 0
                i = 0
                # 5 rows are 2 and 3: one row alone would wait for its own sums.
                while rows - i > 5 or rows - i == 4:
                    four(
                        x, (starts[i] + k, starts[i + 1] + k, starts[i + 2] + k, starts[i + 3] + k),
                        terms, here, size, out,
                        (outs[i] + n, outs[i + 1] + n, outs[i + 2] + n, outs[i + 3] + n), fresh,
                    )  # fmt: skip
                    i += 4
                if rows - i == 2 or rows - i == 5:
                    two(
                        x, (starts[i] + k, starts[i + 1] + k), terms, here, size, out,
                        (outs[i] + n, outs[i + 1] + n), fresh,
                    )  # fmt: skip
                    i += 2
                if rows - i == 3:
                    three(
                        x, (starts[i] + k, starts[i + 1] + k, starts[i + 2] + k), terms, here, size,
                        out, (outs[i] + n, outs[i + 1] + n, outs[i + 2] + n), fresh,
                    )  # fmt: skip

    return some


def adding_of(total: Sum, rows: int, outputs: int) -> Any:
    """Return f(x, apart, count, w, out): out [rows, outputs] += Σ x[r apart + k] w[k][n].

    ``count`` of the sum's terms, ascending. Raises ValueError for a sum of several lanes.
    """
    _check(total)
    width, count = _widths(outputs)
    at_once = _divisor(rows, MOST_AT_ONCE)
    vectors = _divisor(count, ACCUMULATORS // at_once)
    some = _accumulate_of(at_once, 1, vectors, width, outputs)
    step = vectors * width
    places = ", ".join(f"(r + {i}) * apart" for i in range(at_once))
    sums = ", ".join(f"(r + {i}) * {outputs} + n" for i in range(at_once))
    # Written out: a tuple's length is part of its type.
    text = (
        "def adding(x, apart, count, w, out):\n"
        f"    for r in range(0, {rows}, {at_once}):\n"
        f"        for n in range(0, {outputs}, {step}):\n"
        f"            some(x, ({places},), count, ahead(w, n), 0, out, ({sums},), False)\n"
    )
    made: dict[str, Any] = {"some": some, "ahead": ahead}
    exec(text, made)
    return inner(made["adding"])


def _check_dot(total: Sum) -> None:
    if total.chunk != 1 or total.dealt_by != ("chunk",) or total.merged_by != "halving":
        raise ValueError(
            f"sum {total.name} has chunks of {total.chunk} merged by {total.merged_by}: the CPU"
            " back end's dots deal single terms and merge by halving"
        )


def dot_of(total: Sum) -> Any:
    """Return f(a, b) = Σ a[k] b[k] in ``total``'s order: lanes along the vector.

    Raises ValueError for an order other than single terms dealt in turn and merged by halving.
    """
    _check_dot(total)
    return _dot(total.lanes, total.extent)


@functools.cache
def _dot(lanes: int, extent: int) -> Any:
    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        return _halved(builder, _lane_sums(builder, args[0], args[1], extent, lanes), lanes)

    @intrinsic
    def dot(typing: Any, a: Any, b: Any) -> Any:
        return types.float32(a, b), generate

    return dot


def dots_of(total: Sum) -> Any:
    """Return f(a, b, count, out): out[j] = Σ a[k] b[j extent + k], each in ``total``'s order.

    As many dots as there are lanes are merged together, by the same additions. Raises ValueError
    as `dot_of`.
    """
    _check_dot(total)
    return _dots(owner(), total.lanes, total.extent)


@functools.cache
def _dots(build: str, lanes: int, extent: int) -> Any:
    def generate(context: Any, builder: Any, signature: Signature, args: Sequence[Any]) -> Any:
        a, b, out = args
        held = [
            _lane_sums(builder, a, builder.gep(b, [_word(j * extent)]), extent, lanes)
            for j in range(lanes)
        ]
        _store(builder, _merged(builder, held, lanes), out)
        return context.get_dummy_value()

    @intrinsic
    def several(typing: Any, a: Any, b: Any, out: Any) -> Any:
        return types.void(a, b, out), generate

    dot = _dot(lanes, extent)

    @inner
    def dots(a, b, count, out):
        whole = count - count % lanes
        for j in range(0, whole, lanes):
            several(a, ahead(b, j * extent), ahead(out, j))
        for j in range(whole, count):
            out[j] = dot(a, ahead(b, j * extent))

    return dots


def _lane_sums(builder: Any, a: Any, b: Any, extent: int, lanes: int) -> Any:
    """Return the vector of lanes before they are merged."""
    held = ir.Constant(ir.VectorType(_FLOAT, lanes), [0.0] * lanes)
    for first in range(0, extent, lanes):
        count = min(lanes, extent - first)
        held = builder.fadd(held, _products(builder, a, b, first, count, lanes))
    return held


def _products(builder: Any, a: Any, b: Any, first: int, count: int, lanes: int) -> Any:
    """Return ``lanes`` products from ``first`` on, 0 (which changes no lane) after ``count``."""
    i, j = (builder.gep(address, [_word(first)]) for address in (a, b))
    if count == lanes:
        return builder.fmul(_load(builder, i, lanes), _load(builder, j, lanes))
    term = ir.Constant(ir.VectorType(_FLOAT, lanes), [0.0] * lanes)
    for k in range(count):
        left, right = (builder.load(builder.gep(address, [_word(k)])) for address in (i, j))
        term = builder.insert_element(term, builder.fmul(left, right), ir.Constant(_INT, k))
    return term


def _shuffled(builder: Any, a: Any, b: Any, mask: Sequence[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT, len(mask)), list(mask)))


def _halved(builder: Any, held: Any, lanes: int) -> Any:
    while lanes > 1:
        lanes //= 2
        low, high = (
            _shuffled(builder, held, held, range(first, first + lanes)) for first in (0, lanes)
        )
        held = builder.fadd(low, high)
    return builder.extract_element(held, ir.Constant(_INT, 0))


def _merged(builder: Any, held: list[Any], lanes: int) -> Any:
    """Return the vector of the sums of ``lanes`` vectors, each merged by halving.

    Two vectors at a time: the lower halves of both plus the upper halves of both.
    """
    keys, size = [[j] for j in range(lanes)], lanes
    while size > 1:
        half = size // 2
        groups = range(lanes // size)
        low = [i + g * size + k for g in groups for i in (0, lanes) for k in range(half)]
        pairs = list(zip(held[::2], held[1::2], strict=True))
        held = [
            builder.fadd(
                _shuffled(builder, u, v, low), _shuffled(builder, u, v, [i + half for i in low])
            )
            for u, v in pairs
        ]
        keys = [
            [key for both in zip(u, v, strict=True) for key in both]
            for u, v in zip(keys[::2], keys[1::2], strict=True)
        ]
        size = half
    order = [keys[0].index(j) for j in range(lanes)]
    return _shuffled(builder, held[0], held[0], order)
