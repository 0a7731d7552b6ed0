"""Layers on a step, on the device: what both arms are checked and timed on."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.arguments import LayerArgs, args_of
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.random_layer import Layer, make_caches, make_layer
from infx.engine.mono.cuda.random_step import Step, deal_pages, held_slots, make_step
from infx.engine.mono.cuda.setting import MIXED, SHAPE, Asked, Setting
from infx.engine.mono.shape import MOST_ROWS

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.mono.cuda.timing import Launch

__all__ = ["Rank", "World", "ways"]

SEED = 1000


Way = Callable[[int, LayerArgs], None]
"""Launches a layer on the stream of this handle."""


def ways(arms: Arms) -> dict[str, Way]:
    """Return every way to launch a layer; PDL: each kernel may begin before the last one ends."""
    return {
        "unfused": arms.unfused,
        "unfused_pdl": functools.partial(arms.unfused, dependent=True),
        "mono": arms.mono,
        "mono_pdl": functools.partial(arms.mono, dependent=True),
    }


@dataclass(frozen=True, slots=True)
class World:
    """``streams`` go from layer to layer, one more than ``layers``; ``args`` are a layer's each."""

    layers: list[Layer]
    step: Step
    streams: list[Tensor]
    args: list[LayerArgs]

    @classmethod
    def make(cls, layers: Sequence[Layer], step: Step, first: Tensor | None = None) -> World:
        """Return ``layers`` on ``step``, from the same stream whatever the width unless given."""
        import torch

        if first is None:
            device = step.tensors["mid"].device
            draw = torch.Generator(device).manual_seed(7)
            size = (MOST_ROWS, SHAPE.hidden)
            first = torch.randn(size, generator=draw, device=device)[: step.rows].clone()
        streams = [first, *(torch.full_like(first, torch.nan) for _ in layers)]
        args = [
            args_of(
                step.tensors
                | layer.fields
                | {"stream_in": streams[i], "stream_out": streams[i + 1]}
            )
            for i, layer in enumerate(layers)
        ]
        return cls(list(layers), step, streams, args)

    def each(self, launch: Way, count: int | None = None) -> Launch:
        """Return a launch of every layer in turn, or of the first ``count``."""

        def in_turn(stream: int) -> None:
            for args in self.args[:count]:
                launch(stream, args)

        return in_turn


class Rank:
    """Layers of a rank with caches for a setting's widest step, and its steps of any width."""

    def __init__(
        self,
        setting: Setting,
        layers: int,
        device: str = "cuda",
        tell: Callable[[int], None] = lambda made: None,
    ) -> None:
        self.setting, self._device = setting, device
        self._requests = setting.requests(MOST_ROWS)
        self._tables = deal_pages(self._requests, SEED)
        begun, slots = time.monotonic(), self._slots(self._requests, self._tables)
        self.layers: list[Layer] = []
        for seed in range(layers):
            self.layers.append(
                make_layer(seed, slots, setting.pages(), setting.kv, setting.index, setting.kind)
            )
            tell(seed + 1)
        self._finish()
        self.seconds = time.monotonic() - begun

    def world(self, width: int, setting: Setting | None = None) -> World:
        """Return the layers on a step of ``width`` rows, of ``setting`` if it has other pads."""
        requests = (setting or self.setting).requests(width)
        return World.make(self.layers, self._step(requests, width, self._tables))

    def mixed(self) -> World:
        """Return the first layer with caches of its own on a step of very different requests."""
        tables, before = deal_pages(MIXED, SEED), [Asked(one.context, 0) for one in MIXED]
        slots, pages = self._slots(before, tables), 1 + sum(map(len, tables))
        stores = make_caches(SEED, slots, pages, self.setting.kv, self.setting.index)
        layer = Layer(self.layers[0].weights, *stores)
        return World.make([layer], self._step(MIXED, MOST_ROWS, tables))

    def _step(self, requests: Sequence[Asked], width: int, tables: list[list[int]]) -> Step:
        return make_step(requests, width, tables, self._device, self.setting.kind)

    def _slots(self, requests: Sequence[Asked], tables: list[list[int]]) -> Tensor:
        return held_slots(requests, tables).to(self._device)

    def _finish(self) -> None:
        """Wait for what is drawn, and give back what drawing needed."""
        import torch

        if self._device != "cpu":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
