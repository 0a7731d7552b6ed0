"""Float32 arithmetic in plain Python, and sums in the order that the table gives.

Python's floats are float64. Rounding the float64 result of +, -, x, / or a square root of float32
numbers to float32 gives the correctly rounded float32 result (53 >= 2 x 24 + 2 bits), so every
operation here is the one that float32 hardware does without fused multiply-add. Exponentials are
correctly rounded but for rare ties; hardware's differ by an ulp or two.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import add, mul, sub

from infx.engine.mono.sums import Sum

__all__ = [
    "Vector",
    "add_up",
    "dot",
    "exponential",
    "f32",
    "minus",
    "plus",
    "scaled",
    "sigmoid",
    "times",
    "vector",
]

Vector = array  # of type code "f"


def vector(numbers: Sequence[float] | map[float]) -> Vector[float]:
    """Return ``numbers`` rounded to float32, too large ones to infinity."""
    return array("f", numbers)


def f32(number: float) -> float:
    """Return ``number`` rounded to float32."""
    return array("f", (number,))[0]


def plus(a: Vector[float], b: Vector[float]) -> Vector[float]:
    """Return a + b."""
    return array("f", map(add, a, b))


def minus(a: Vector[float], b: Vector[float]) -> Vector[float]:
    """Return a - b."""
    return array("f", map(sub, a, b))


def times(a: Sequence[float], b: Sequence[float]) -> Vector[float]:
    """Return a b, number by number."""
    return array("f", map(mul, a, b))


def scaled(factor: float, a: Sequence[float]) -> Vector[float]:
    """Return factor a."""
    return array("f", [factor * number for number in a])


def exponential(x: float) -> float:
    """Return e^x for x up to 0 (0 for -inf, NaN for NaN)."""
    return f32(math.exp(x))


def sigmoid(x: float) -> float:
    """Return 1 / (1 + e^-x)."""
    small = math.exp(-abs(x))
    return f32((1.0 if x >= 0 else small) / (1.0 + small))


def add_up(
    total: Sum,
    term: Callable[[int], Vector[float]],
    size: int,
    *,
    extent: int | None = None,
    where: Mapping[str, int] | None = None,
    arrivals: Sequence[int] | None = None,
) -> Vector[float]:
    """Return Σ term(k), vectors of ``size``, in the order of ``total`` (see `Sum.schedule`)."""
    lanes = []
    for ranges in total.schedule(where, extent):
        lane = vector([0.0] * size)
        for terms in ranges:
            for k in terms:
                lane = plus(lane, term(k))
        lanes.append(lane)
    end = 0
    for end, other in total.merges(arrivals):
        lanes[end] = plus(lanes[end], lanes[other])
    return lanes[end]


def dot(total: Sum, a: Sequence[float], b: Sequence[float]) -> float:
    """Return Σ a b in the order of ``total``."""
    products = times(a, b)
    return add_up(total, lambda k: products[k : k + 1], 1)[0]
