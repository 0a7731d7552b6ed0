# mypy: ignore-errors
"""The final norm and the head, row by row: a row's logits depend on that row alone.

A matrix product of a library may add in another order for another number of rows; these loops add
the inputs in ascending order, with the vector along the vocabulary.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["head"]


@njit(error_model="numpy", cache=True, nogil=True)
def head(stream, norm, weight, eps, logits):
    """Write ``logits`` [n, ids] of ``stream`` [n, hidden]; ``weight`` [hidden, ids], float32 all.

    x · rsqrt(mean(x²) + eps) · (1 + norm), then the product; sums ascend.
    """
    hidden, one = stream.shape[1], np.float32(1)
    for row in range(stream.shape[0]):
        squares = np.float32(0)
        for i in range(hidden):
            squares += stream[row, i] * stream[row, i]
        mean = np.float32(squares / np.float32(hidden))
        factor = one / np.float32(math.sqrt(np.float32(mean + eps)))
        out = logits[row]
        out[:] = 0
        for i in range(hidden):
            x = np.float32(np.float32(factor * stream[row, i]) * np.float32(one + norm[i]))
            column = weight[i]
            for j in range(out.size):
                out[j] += x * column[j]
