"""The rows of a step as a host hands them, and what is refused of them.

`refuse_step` runs before every decode step, so it looks at descriptions of arrays (types, shapes,
strides) and at three short lists of numbers, and makes nothing.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Protocol

from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import MOST_ROWS

__all__ = ["Array", "Bounds", "StepRows", "refuse_step"]

PAD = -1
_SIZES = {"int32": 4, "int64": 8}


class Array(Protocol):
    """An array as numpy, cupy and numba.cuda have them; strides are bytes."""

    @property
    def dtype(self) -> Any:
        """The type of its numbers; its text is ``int32``, ``int64``, …"""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one number to the next, by dimension."""

    def tolist(self) -> Any:
        """Return its numbers."""

    def __len__(self) -> int:
        """Return the size of its first dimension."""

    def __getitem__(self, rows: slice) -> Any:
        """Return a view of its first dimension."""


@dataclass(frozen=True, slots=True)
class StepRows:
    """A step: C-contiguous arrays, borrowed until the next one.

    The step has as many rows as ``positions``, pads included; of the others the first so many
    count. ``batch_ids`` int32 [R] number the step's requests from 0, -1 is a pad; ``positions``
    int64 [R]; ``slots`` int64 [R], page x block + offset; ``pages`` int32 [R, m], those of each
    row's request. ``prefill``: some rows are a prompt's; ``requests``: how many live rows belong
    to. ``last`` is the largest position of any row, pads included, said by a host whose arrays lie
    on a device that it would have to wait for: then no number of them is read, and ids, slots and
    the lower bound of positions are the host's word. ``traced``: a compiler of the host's framework
    is recording this call.
    """

    batch_ids: Array | None
    positions: Array
    slots: Array
    pages: Array
    prefill: bool = False
    requests: int = 1
    last: int | None = None
    traced: bool = False

    @property
    def rows(self) -> int:
        """Rows of the step, pads included."""
        shape = self.positions.shape
        return shape[0] if shape else 0

    def exact(self) -> StepRows:
        """Return a step that was not refused with arrays of exactly its rows: views, no copies."""
        rows, ids = self.rows, self.batch_ids
        assert ids is not None  # refused before
        if len(ids) == len(self.slots) == len(self.pages) == rows:
            return self
        cut = {"batch_ids": ids, "slots": self.slots, "pages": self.pages}
        return replace(self, **{name: array[:rows] for name, array in cut.items()})


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the numbers of a step stay below: positions ``reach``, slots ``slots``.

    ``block`` is tokens a page.
    """

    reach: int
    block: int
    slots: int


def refuse_step(step: StepRows, bounds: Bounds) -> Refusal | None:
    """Return why no build could serve ``step``, or None; the first fault in a fixed order."""
    return (
        _refuse_sort(step)
        or _refuse_arrays(step)
        or (_refuse_numbers(step, bounds) if step.last is None else None)
        or _refuse_reach(step, bounds)
    )


def _refuse_sort(step: StepRows) -> Refusal | None:
    rows = step.rows
    if step.traced:
        return Refusal(
            "mono-traced",
            "the call is being traced by the host's compiler: expected a plain call, or a capture"
            " of a graph between `with mono.capturing()`",
        )
    if step.prefill:
        return Refusal("mono-prefill", f"{rows} rows, some of a prompt: expected decode rows only")
    if rows == 0:
        return Refusal("mono-no-rows", f"0 rows: expected 1 to {MOST_ROWS}")
    if rows > MOST_ROWS:
        return Refusal(
            "mono-too-many-rows", f"{rows} rows, pads included: expected 1 to {MOST_ROWS}"
        )
    return None


_Described = tuple[Any, tuple[int, ...], tuple[int, ...]]


def _refuse_arrays(step: StepRows) -> Refusal | None:
    ids, positions, slots, pages = step.batch_ids, step.positions, step.slots, step.pages
    if ids is None:
        return Refusal(
            "mono-batch-ids-missing",
            f"batch_ids: none for {step.rows} rows; expected int32, -1 for each pad",
        )
    return _refuse_described(
        (ids.dtype, ids.shape, ids.strides),
        (positions.dtype, positions.shape, positions.strides),
        (slots.dtype, slots.shape, slots.strides),
        (pages.dtype, pages.shape, pages.strides),
    )


# A server's steps have few descriptions, so this is a look-up: 0.9 us where the checks take 2.5.
@functools.lru_cache(maxsize=256)
def _refuse_described(
    ids: _Described, positions: _Described, slots: _Described, pages: _Described
) -> Refusal | None:
    rows = positions[1][0]
    return (
        _refuse_ids(ids, rows)
        or _refuse_array("batch_ids", ids, "int32", 1, rows)
        or _refuse_array("positions", positions, "int64", 1, rows)
        or _refuse_array("slots", slots, "int64", 1, rows)
        or _refuse_array("pages", pages, "int32", 2, rows)
    )


def _refuse_ids(ids: _Described, rows: int) -> Refusal | None:
    dtype, shape, _ = ids
    if str(dtype) != "int32":
        return Refusal("mono-batch-ids-dtype", f"batch_ids are {dtype}: expected int32")
    if len(shape) == 1 and shape[0] < rows:
        return Refusal(
            "mono-batch-ids-few",
            f"{shape[0]} batch_ids for {rows} rows: expected one for each, pads included",
        )
    return None


def _refuse_array(
    what: str, array: _Described, expected: str, rank: int, rows: int
) -> Refusal | None:
    dtype, shape, strides = array
    if str(dtype) != expected:
        return Refusal("mono-step-dtype", f"{what} are {dtype}: expected {expected}")
    if len(shape) != rank:
        return Refusal(
            "mono-step-rank", f"{what} have {len(shape)} dimensions {shape}: expected {rank}"
        )
    if shape[0] < rows:
        return Refusal("mono-step-few", f"{shape[0]} {what} for {rows} rows: expected one for each")
    size = _SIZES[expected]
    whole = (size,) if rank == 1 else (size * shape[1], size)
    # Steps of one are never taken, so a dimension of one has any stride.
    if any(n > 1 and is_ != dense for n, is_, dense in zip(shape, strides, whole, strict=True)):
        return Refusal(
            "mono-step-strides",
            f"{what} {shape} have strides of {strides} bytes: expected {whole}, contiguous",
        )
    return None


def _refuse_numbers(step: StepRows, bounds: Bounds) -> Refusal | None:
    rows, ids = step.rows, step.batch_ids
    assert ids is not None  # refused before
    numbers = ids.tolist()[:rows]
    if min(numbers) < PAD or max(numbers) >= step.requests:
        return Refusal(
            "mono-batch-ids-range",
            f"batch_ids {numbers} of {step.requests} requests: expected {PAD} for a pad, or 0 to"
            f" {step.requests - 1}",
        )
    slots = step.slots.tolist()[:rows]
    if min(slots) < 0 or max(slots) >= bounds.slots:
        return Refusal(
            "mono-slot-outside",
            f"slots {slots}: expected 0 to {bounds.slots - 1}, the cache's last",
        )
    return None


def _refuse_reach(step: StepRows, bounds: Bounds) -> Refusal | None:
    first, last = _ends(step)
    if first < 0 or last >= bounds.reach:
        return Refusal(
            "mono-row-beyond-context",
            f"positions {first} to {last}, of pads and verify rows too: expected 0 to"
            f" {bounds.reach - 1}",
        )
    pages = step.pages.shape[1]
    if last >= pages * bounds.block:
        return Refusal(
            "mono-page-table-short",
            f"{pages} pages of {bounds.block} tokens for position {last}: expected at least"
            f" {last // bounds.block + 1}",
        )
    return None


def _ends(step: StepRows) -> tuple[int, int]:
    if step.last is not None:
        return 0, step.last
    positions = step.positions.tolist()
    return min(positions), max(positions)
