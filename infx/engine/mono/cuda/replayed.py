"""Both arms in replays of captured graphs, as a server runs them: what is captured stays right.

A host's tensors are fixed, a graph holds `prepare` and one layer, and each step is written into the
tensors before it is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from infx.engine.mono.cuda.probed import OnDevice
from infx.engine.mono.cuda.scratch import SHAPE
from infx.engine.mono.cuda.step_numbers import DeviceArray, tensors_of
from infx.engine.mono.step import StepRows

if TYPE_CHECKING:
    from infx.engine.mono.cuda.back_end import CudaBackEnd
    from infx.engine.mono.probe.rows import Arm

__all__ = ["Replayed", "captured"]

Launch = Callable[[], None]


def captured(launch: Launch) -> Launch:
    """Return the replay of a graph of ``launch``, which ran once before it was captured."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph.replay


class _Fixed:
    """The tensors of steps of ``rows`` rows: numbers and streams at addresses that stay."""

    def __init__(self, rows: int, device: str) -> None:
        self.numbers = (
            torch.zeros(rows, dtype=torch.int32, device=device),
            torch.zeros(rows, dtype=torch.int64, device=device),
            torch.zeros(rows, dtype=torch.int64, device=device),
            torch.zeros((rows, SHAPE.pages), dtype=torch.int32, device=device),
        )
        self.given, self.made = torch.zeros((2, rows, SHAPE.hidden), device=device)

    @property
    def step(self) -> StepRows:
        """The numbers as a host hands them that vouches for them: no device is waited for."""
        ids, positions, slots, pages = map(DeviceArray, self.numbers)
        return StepRows(ids, positions, slots, pages, last=SHAPE.reach - 1)

    def take(self, step: StepRows) -> None:
        """Write the numbers of ``step`` over the last one's."""
        *own, table = self.numbers
        *given, pages = tensors_of(step)
        for tensor, numbers in zip(own, given, strict=True):
            tensor.copy_(numbers)
        table[:, : pages.shape[1]].copy_(pages)


class Replayed(OnDevice):
    """`OnDevice` whose every run is a replay; a graph for each number of rows, arm and layer."""

    def __init__(
        self,
        back_end: CudaBackEnd,
        layers: Sequence[Mapping[str, Tensor]],
        widths: Collection[int],
    ) -> None:
        super().__init__(back_end, layers, widths)
        self._fixed: dict[int, _Fixed] = {}
        self._graphs: dict[tuple[int, Arm, int], Launch] = {}
        self._rows = 0

    def prepare(self, step: StepRows) -> None:
        """Take a step: judge its numbers, and write them to where graphs read them."""
        super().prepare(step)
        self._rows = step.rows
        if step.rows not in self._fixed:
            self._fixed[step.rows] = _Fixed(step.rows, self._back_end.device)
        self._fixed[step.rows].take(step)

    def _launch(self, arm: Arm, layer: int, given: Tensor, made: Tensor) -> None:
        fixed, name = self._fixed[self._rows], (self._rows, arm, layer)
        fixed.given.copy_(given)
        fixed.made.copy_(made)
        if name not in self._graphs:
            self._graphs[name] = captured(lambda: self._whole(arm, layer, fixed))
        self._graphs[name]()
        made.copy_(fixed.made)

    def _whole(self, arm: Arm, layer: int, fixed: _Fixed) -> None:
        self._back_end.prepare(fixed.step, self._width(len(fixed.given)))
        super()._launch(arm, layer, fixed.given, fixed.made)
