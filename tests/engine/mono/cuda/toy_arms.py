"""Kernels that are Python: they read and write what `LayerArgs` points to, on the host.

A layer doubles a live row's stream, keeps its first numbers in the caches, and chooses experts by
them. So everything up to a launch can be run and judged without a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from infx.engine.mono.cuda import back_end, probed, width
from infx.engine.mono.cuda.arguments import LayerArgs
from infx.engine.mono.cuda.pack import field_sizes
from infx.engine.mono.cuda.scratch import SHAPE
from infx.engine.mono.cuda.source import BuildSource
from infx.engine.mono.probe.arms import Hosted, Three
from infx.engine.mono.probe.rows import Arm

HIDDEN, TOPK = SHAPE.hidden, SHAPE.experts_per_token


class ToyArms:
    """Stands for `Arms`; ``launches`` are all of a test's: (arm, rows, stream in, stream out)."""

    launches: ClassVar[list[tuple[str, int, int, int]]] = []
    fault: ClassVar[str] = ""

    def __init__(self, rows: int, defines: Mapping[str, int], folder: Path | None) -> None:
        self.rows, self.defines = rows, dict(defines)
        self.sources: list[BuildSource] = []

    def load(self) -> None:
        pass

    def mono(self, stream: int, args: LayerArgs) -> None:
        self._launch("mono", args)

    def unfused(self, stream: int, args: LayerArgs) -> None:
        self._launch("unfused", args)

    def _launch(self, arm: str, args: LayerArgs) -> None:
        self.launches.append((arm, self.rows, args.stream_in, args.stream_out))
        ids, slots = (at(a, np.int32, self.rows) for a in (args.batch_ids, args.slots))
        given, out = (floats(a, self.rows, HIDDEN) for a in (args.stream_in, args.stream_out))
        routing = floats(args.routing, self.rows, 2 * TOPK)
        rotary = floats(args.rotary, self.rows, SHAPE.rotary_dim)
        page_stride = args.page_stride
        pages = at(args.pages, np.int32, self.rows * page_stride).reshape(self.rows, page_stride)
        positions = at(args.positions, np.int32, self.rows)
        out[:], routing[:] = 0, -1
        for row in np.flatnonzero(ids >= 0):
            assert pages[row, positions[row] // SHAPE.block] == slots[row] // SHAPE.block
            assert rotary[row, 0] == np.float32(np.cos(np.float64(positions[row])))
            out[row] = 2 * given[row] + rotary[row, 0]
            if self.fault == "company":
                out[row] += (ids >= 0).sum()
            if self.fault == "arm" and arm == "mono":
                out[row, 5] += 1
            first = int(abs(given[row, 0]) * 100) % (SHAPE.experts - TOPK)
            routing[row, :TOPK] = np.arange(first, first + TOPK)
            self._keep(args, int(slots[row]), given[row])
        if self.fault == "gave up":
            at(args.give_up, np.int32, 4)[:] = (1, 6, 9, 5)
        if self.fault == "stray":
            at(args.index_keys, np.uint8, 1)[:] ^= 1

    def _keep(self, args: LayerArgs, slot: int, stream: npt.NDArray[np.float32]) -> None:
        raw = stream.view(np.uint8)
        for number, name in enumerate(("keys", "values", "index_keys")):
            vector = at(getattr(args, name) + 128 * slot, np.uint8, 128)
            vector[:] = raw[128 * number :][:128]
        for name in ("key_scales", "value_scales"):
            at(getattr(args, name) + 4 * slot, np.float32, 1)[:] = stream[:1]


def at(address: int, dtype: Any, count: int) -> npt.NDArray[Any]:
    """Return ``count`` numbers at ``address``."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_byte * size).from_address(address), dtype=dtype)


def floats(address: int, *size: int) -> npt.NDArray[np.float32]:
    return at(address, np.float32, int(np.prod(size))).reshape(size)


def unwritten_weights() -> dict[str, Tensor]:
    """Return a layer's fields that nobody writes: memory that is never there."""
    return {name: torch.empty(n, dtype=d) for name, (n, d) in field_sizes(SHAPE).items()}


def install(patch: pytest.MonkeyPatch, fault: str = "") -> None:
    """Let back ends launch toys over tensors of the host, as if it were a GPU."""
    patch.setattr(ToyArms, "launches", [])
    patch.setattr(ToyArms, "fault", fault)
    patch.setattr(back_end, "Arms", ToyArms)
    patch.setattr(back_end, "cuda_refusal", lambda needed, number, compiled: None)
    patch.setattr(back_end, "DEVICE", "cpu")
    patch.setattr(width, "current_stream", lambda: 0)
    patch.setattr(probed, "GPU", "cpu")
    patch.setattr(probed, "make_weights", lambda seed, device: unwritten_weights())


def install_check(patch: pytest.MonkeyPatch) -> None:
    """Let a check of toys have a small cache, and no plain torch, which would take 7 GB."""

    def three(hosted: Hosted, _: object) -> Three:
        return Three(hosted, Unfused(hosted))  # type: ignore[arg-type]

    patch.setattr(probed, "CHECKED_PAGES", 64)
    patch.setattr(probed, "MOST_PAGES", 4)
    patch.setattr(probed, "_reference", lambda *_: None)
    patch.setattr(probed, "Three", three)


class Unfused:
    """In the place of plain torch: what the toys say."""

    def __init__(self, of: Hosted) -> None:
        self._of = of

    def prepare(self, step: object) -> None:
        pass

    def running(self, arm: Arm) -> object:
        return self._of.running("unfused")


def launched_again(launch: Callable[[], None]) -> Callable[[], None]:
    """Stands for a graph: what is replayed is what was captured, with the numbers of now."""
    launch()
    return launch
