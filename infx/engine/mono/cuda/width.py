"""A build of one width over borrowed layers: what its kernels work in, and each layer's arguments.

Addresses never change, and a run allocates nothing: all of it may be captured in a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from infx.engine.mono.cuda.arguments import LayerArgs, layer_args
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.gave_up import GiveUpRecord
from infx.engine.mono.cuda.scratch import KEPT, SHAPE, StepBuffers, scratch
from infx.engine.mono.cuda.step_numbers import tensors_of
from infx.engine.mono.step import StepRows

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["WidthBuild", "current_stream"]

Launch = Callable[[int, LayerArgs], None]
TOPK = SHAPE.experts_per_token


def current_stream() -> int:
    """Return the handle of the stream that torch launches on."""
    import torch

    return int(torch.cuda.current_stream().cuda_stream)


class WidthBuild:
    """``arms`` over layers whose weights and caches lie at ``fields``, by layer and field."""

    def __init__(
        self,
        arms: Arms,
        fields: Mapping[int, Mapping[str, int]],
        record: GiveUpRecord,
        device: str,
    ) -> None:
        import torch

        self.arms, self._count = arms, 0
        self._step = StepBuffers(arms.rows, device)
        self._scratch = scratch(arms.rows, device) | {"give_up": record.words}
        routing = self._scratch["routing"]
        self._routing = {number: torch.zeros_like(routing) for number in fields}
        self._streams = torch.zeros((2, arms.rows, SHAPE.hidden), device=device)
        own = {name: t.data_ptr() for name, t in (self._scratch | self._step.tensors).items()}
        own["page_stride"] = self._step.tensors["pages"].stride(0)
        self._args = {
            number: layer_args(own | dict(borrowed) | {"routing": self._routing[number].data_ptr()})
            for number, borrowed in fields.items()
        }

    def take(self, step: StepRows) -> None:
        """Copy the step's numbers to where kernels read them."""
        self._step.take(*tensors_of(step))
        self._count = step.rows

    def mono(self, layer: int, stream_in: Tensor, stream_out: Tensor) -> None:
        """Run a layer of the taken step as one kernel."""
        self._run(self.arms.mono, layer, stream_in, stream_out)

    def unfused(self, layer: int, stream_in: Tensor, stream_out: Tensor) -> None:
        """Run a layer of the taken step as a kernel a stage."""
        self._run(self.arms.unfused, layer, stream_in, stream_out)

    def _run(self, launch: Launch, layer: int, stream_in: Tensor, stream_out: Tensor) -> None:
        for stream in (stream_in, stream_out):
            self._check(stream)
        args, given, made = self._args[layer], stream_in, stream_out
        # Kernels read and write as many rows as they are built for.
        if self._count < self.arms.rows:
            given, made = self._streams
            given[: self._count].copy_(stream_in)
        args.stream_in, args.stream_out = given.data_ptr(), made.data_ptr()
        launch(current_stream(), args)
        if self._count < self.arms.rows:
            stream_out.copy_(made[: self._count])

    def _check(self, stream: Tensor) -> None:
        import torch

        wanted, home = (self._count, SHAPE.hidden), self._streams.device
        if (tuple(stream.shape), stream.dtype, stream.device) != (wanted, torch.float32, home) or (
            not stream.is_contiguous()
        ):
            raise ValueError(
                f"a stream is {stream.dtype} {list(stream.shape)} on {stream.device} with strides"
                f" {stream.stride()}: expected float32 {list(wanted)} on {home}, contiguous"
            )

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the expert ids [n, topk] of the taken step's rows in ``layer``."""
        chosen = self._routing[layer][: self._count, :TOPK]
        return np.asarray(chosen.cpu().numpy(), dtype=np.int64)

    def fill(self, byte: int) -> None:
        """Fill what stages leave to each other, and the build's own streams, with ``byte``."""
        for name, tensor in self._scratch.items():
            if name not in KEPT:
                _bytes(tensor).fill_(byte)
        for tensor in (*self._routing.values(), self._streams):
            _bytes(tensor).fill_(byte)


def _bytes(tensor: Tensor) -> torch.Tensor:
    import torch

    return tensor.view(torch.uint8)
