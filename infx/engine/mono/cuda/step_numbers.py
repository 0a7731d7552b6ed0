"""The numbers of a step as a host hands them: as tensors, and judged before kernels use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from infx.engine.mono.step import Bounds, StepRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["DeviceArray", "check_numbers", "tensors_of"]

Ints = npt.NDArray[np.int64]


class DeviceArray:
    """A torch tensor as `StepRows` wants arrays: numpy's name of the type, strides in bytes."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self.shape = tuple(tensor.shape)
        self.strides = tuple(step * tensor.element_size() for step in tensor.stride())

    def tolist(self) -> Any:
        """Return its numbers; waits for the device."""
        return self.tensor.tolist()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> DeviceArray:
        return DeviceArray(self.tensor[rows])


def tensors_of(step: StepRows) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ids, positions, slots and pages of ``step`` as tensors over the same memory."""
    return (
        _tensor(step.batch_ids),
        _tensor(step.positions),
        _tensor(step.slots),
        _tensor(step.pages),
    )


def _tensor(array: Any) -> Tensor:
    import torch

    return array.tensor if isinstance(array, DeviceArray) else torch.as_tensor(array)


def check_numbers(step: StepRows, bounds: Bounds) -> None:
    """Raise ValueError for a row that kernels would look up outside of the cache or the build.

    Waits for a device that has the numbers; where the host says ``last``, that alone is judged.
    """
    if step.last is not None:
        if step.last >= bounds.reach:
            raise ValueError(f"last position {step.last} is beyond the build's {bounds.reach}")
        return
    ids, positions, slots, pages = (_numbers(tensor) for tensor in tensors_of(step))
    live = ids >= 0
    told = f"positions {positions.tolist()}, slots {slots.tolist()}, {pages.shape[1]} pages a row"
    if ((positions < 0) | (positions >= bounds.reach)).any():
        raise ValueError(f"a position is below 0 or beyond the build's {bounds.reach}: {told}")
    if (live & (positions // bounds.block >= pages.shape[1])).any():
        raise ValueError(f"a position is beyond its row's pages: {told}")
    if (live & ((slots < 0) | (slots >= bounds.slots))).any():
        raise ValueError(f"a slot is outside of the cache's {bounds.slots}: {told}")
    held = live[:, None] & (np.arange(pages.shape[1]) <= (positions // bounds.block)[:, None])
    if (held & ((pages < 0) | (pages >= bounds.slots // bounds.block))).any():
        raise ValueError(f"a page is outside of the cache's {bounds.slots // bounds.block}: {told}")
    _check_requests(ids, pages, held)


def _check_requests(ids: Ints, pages: Ints, held: npt.NDArray[np.bool_]) -> None:
    """Raise ValueError unless rows of a request stand together and have the same pages.

    Scores of all of them are made over the pages of the first one.
    """
    for number in {int(one) for one in ids if one >= 0}:
        rows = np.flatnonzero(ids == number)
        if rows[-1] - rows[0] >= len(rows):
            raise ValueError(f"rows {rows.tolist()} of request {number} do not stand together")
        for row in rows[1:]:
            if (pages[row] != pages[rows[0]])[held[row]].any():
                raise ValueError(f"rows {rows.tolist()} of request {number} have other pages")


def _numbers(tensor: torch.Tensor) -> Ints:
    return tensor.cpu().numpy().astype(np.int64)
