# ruff: noqa: F821
# mypy: ignore-errors
"""What all stages share. Names in capitals that are defined nowhere are the build's constants."""

import math

import numpy as np
from numba import njit

stage = njit(error_model="numpy", cache=True, no_cfunc_wrapper=True, nogil=True)
part = inner

HIDDEN, DIM, BLOCK = SHAPE_HIDDEN, SHAPE_HEAD_DIM, SHAPE_BLOCK
ONE, EPS = np.float32(1), np.float32(SHAPE_NORM_EPS)
# Batch ids of a row that is a pad, and of one beyond the step's rows, which nothing is written for.
PAD, NO_ROW = -1, -2


@part
def find_live(step, ints):
    """Put the rows that are no pads at ints[LIVE]; return how many."""
    count = 0
    for row in range(WIDTH):
        if step[row] >= 0:
            ints[LIVE + count] = row
            count += 1
    return count


@part
def inverse_root(squares, size):
    mean = np.float32(np.float32(squares / np.float32(size)) + EPS)
    return np.float32(ONE / np.float32(math.sqrt(mean)))


@part
def wide_exponential(x):
    """Return e^x of a float64 up to 0, within 2 ulps; below -110 it is e^-110, 0 in float32.

    Written out so that loops of it become vectors: a call for each number took most of a row's
    attention. Taylor to r^11 leaves 6e-15 at |r| = ln 2 / 2.
    """
    x = -110.0 if x < -110.0 else x
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.755731922398589e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * power_of_two(shifted)


@part
def exponential(x):
    return np.float32(wide_exponential(np.float64(x)))


@part
def sigmoid(x):
    wide = np.float64(x)
    small = wide_exponential(-abs(wide))
    return np.float32((1.0 if wide >= 0 else small) / (1.0 + small))


@part
def swiglu(both, scale, out, pairs):
    """Write (u + 1) g σ(alpha g) of [gates | ups], times the norm's ``scale``, cut at the limit."""
    limit, ups = np.float32(SHAPE_SWIGLU_LIMIT), ahead(both, pairs)
    for j in range(pairs):
        gate, up = np.float32(scale * both[j]), np.float32(scale * ups[j])
        # In this order a NaN stays one.
        gate = limit if gate > limit else gate
        up = -limit if up < -limit else up
        up = limit if up > limit else up
        lit = np.float32(gate * sigmoid(np.float32(SHAPE_SWIGLU_ALPHA * np.float64(gate))))
        out[j] = np.float32(lit + np.float32(lit * up))


@part
def weighed(x, norm, out):
    """Write a row's x (1 + w): the packed norm holds 1 + w."""
    for i in range(HIDDEN):
        out[i] = x[i] * norm[i]


@part
def add_residual(own, residual, out):
    """Write residual + a row's sum over ranks, all of which hold the same part here."""
    for j in range(HIDDEN):
        total = own[j]
        for _ in range(1, SHAPE_RANKS):
            total = np.float32(total + own[j])
        out[j] = np.float32(residual[j] + total)


@part
def copy(source, target, count):
    for i in range(count):
        target[i] = source[i]


@part
def clear_pads(step, stream_out):
    """Write zeros to the rows that are pads."""
    for row in range(WIDTH):
        if step[row] == PAD:
            for i in range(HIDDEN):
                stream_out[row * HIDDEN + i] = 0
