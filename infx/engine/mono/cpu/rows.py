# mypy: ignore-errors
"""What is written before a call, each in one compiled call: a step's rows, a layer's streams."""

from __future__ import annotations

from numba import njit, types

__all__ = ["FAULTS", "point", "take_rows"]

# What `take_rows` returns, 0 being none.
FAULTS = (
    "",
    "more rows than the build's width, or arrays of other lengths",
    "a position is below 0, beyond the build's reach or beyond its row's pages",
    "a slot is outside of the cache",
    "a page is outside of the cache",
    "rows of one request have other pages",
)
# Numbers, not names of other files: what numba keeps of this file goes stale with this file only.
PAD, NO_ROW = -1, -2  # kernels/common.py
STREAM_IN, STREAM_OUT = 0, 1  # pointers.ARGUMENTS
_READ = {"readonly": True}
_GIVEN = (
    types.Array(types.int32, 1, "C", **_READ),
    types.Array(types.int64, 1, "C", **_READ),
    types.Array(types.int64, 1, "C", **_READ),
    types.Array(types.int32, 2, "C", **_READ),
)
_OWN = (types.float32[:, ::1], types.int64[::1], types.int32[::1], types.float32[:, ::1])


@njit(types.int64(*_GIVEN, *_OWN), cache=True, nogil=True)
def take_rows(ids, positions, slots, pages, turns, bounds, step, turn):
    """Copy the rows to ``step`` and their angles to ``turn``; return a fault, having done nothing.

    ``bounds`` are the cache's slots, tokens a page, and the build's reach.
    """
    rows, width = len(ids), len(turn)
    if rows > width or len(positions) != rows or len(slots) != rows or len(pages) != rows:
        return 1
    block, most = bounds[1], len(step) // width - 3
    for row in range(rows):
        if ids[row] < 0:
            continue
        position = positions[row]
        held = position // block + 1
        if position < 0 or position >= bounds[2] or held > pages.shape[1]:
            return 2
        if slots[row] < 0 or slots[row] >= bounds[0]:
            return 3
        # Who leads a request reads for its later rows as well, by pages of its own.
        leader = row
        for earlier in range(row):
            if ids[earlier] == ids[row]:
                leader = earlier
                break
        for page in range(held):
            if pages[row, page] < 0 or (pages[row, page] + 1) * block > bounds[0]:
                return 4
            if pages[row, page] != pages[leader, page]:
                return 5
    for row in range(width):
        live = row < rows and ids[row] >= 0
        step[row] = ids[row] if live else PAD if row < rows else NO_ROW
        step[width + row] = positions[row] if live else 0
        step[2 * width + row] = slots[row] if live else 0
        if live:
            turn[row] = turns[positions[row]]
            first = 3 * width + row * most
            for page in range(min(most, pages.shape[1])):
                step[first + page] = pages[row, page]
    return 0


_STREAM = types.Array(types.float32, 2, "C", **_READ)


_POINT = (types.int64[::1], _STREAM, types.float32[:, ::1], types.int64, types.int64)


@njit(types.boolean(*_POINT), cache=True, nogil=True)
def point(block, stream_in, stream_out, rows, hidden):
    """Write where a call's streams [rows, hidden] lie to its block; False: of other sizes."""
    fit = len(stream_in) == len(stream_out) == rows
    if not fit or stream_in.shape[1] != hidden or stream_out.shape[1] != hidden:
        return False
    block[STREAM_IN], block[STREAM_OUT] = stream_in.ctypes.data, stream_out.ctypes.data
    return True
