"""The two arms of a layer on the device: one kernel a stage, or one kernel a layer.

Both are built for a width; all tensors that arguments point to stay the caller's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

from infx.engine.mono.cuda.arguments import LayerArgs
from infx.engine.mono.cuda.compiling import cubin_of
from infx.engine.mono.cuda.driver import Kernel, Module
from infx.engine.mono.cuda.packing import SLOT_BYTES, WARPS
from infx.engine.mono.cuda.source import BuildSource, build_source
from infx.engine.mono.shape import GPU_GRAIN, H200, KINDS, Kind

__all__ = ["BLOCKS", "SHARED_BYTES", "Arms"]

BLOCKS, THREADS = H200.blocks, H200.threads
RING_SLOTS = 3
STAGE_BYTES = 72 * 1024
PLACES_BYTES = 64
SHARED_BYTES = STAGE_BYTES + WARPS * RING_SLOTS * (SLOT_BYTES + 8) + PLACES_BYTES
# The file of kernels/ that has a stage; the others are in unfused.cu.
FILES = {
    **dict.fromkeys(("scores", "split", "attend", "merge"), "attn.cu"),
    "full": "full.cu",
    **dict.fromkeys(("dense_up", "dense_down"), "dense.cu"),
}
NO_RING = ("attn.cu", "full.cu")
MONO: dict[Kind, tuple[str, str]] = {
    "sparse": ("mono.cu", "mono_layer"),
    "sparse_dense": ("mono_dense.cu", "mono_sparse_dense"),
    "dense": ("mono_dense.cu", "mono_dense"),
}


class Arms:
    """Kernels for ``rows`` rows; ``defines`` are what kernels/ asks for between #ifndef or #if.

    ``stages`` are the unfused arm's kernels in their order; LAYER_KIND is the place of the kind of
    layer in `infx.engine.mono.shape.KINDS`.
    """

    def __init__(
        self, rows: int, defines: Mapping[str, int] | None = None, folder: Path | None = None
    ) -> None:
        self.rows = rows
        numbers = {"ROWS": rows, "KV_KIND": 1, "INDEX_KIND": 1}
        numbers |= {"LAYER_KIND": KINDS.index("sparse"), **(defines or {})}
        self.kind = KINDS[numbers["LAYER_KIND"]]
        self.stages = _stages(self.kind, folded=rows <= GPU_GRAIN.folded_rows)
        self._numbers, self._folder = numbers, folder
        self._modules: dict[str, Module] = {}
        self._kernels: dict[str, Kernel] = {}

    def load(self) -> None:
        """Compile and load every kernel of both arms, so that a launch does neither.

        Raises InfraError as `cubin_of`, or ``mono-bind-failed`` with the driver's words.
        """
        self.kernel(*MONO[self.kind])
        for name in self.stages:
            self._stage_kernel(name)

    @property
    def sources(self) -> list[BuildSource]:
        """The builds of both arms."""
        files = {FILES.get(name, "unfused.cu") for name in self.stages}
        return [self.source(file) for file in (MONO[self.kind][0], *sorted(files))]

    def source(self, file: str) -> BuildSource:
        """Return the build of a file of kernels/."""
        return build_source(file, self._numbers)

    def kernel(self, file: str, name: str) -> Kernel:
        """Return a kernel of a file of kernels/, compiled and loaded at its first use."""
        if name not in self._kernels:
            if file not in self._modules:
                self._modules[file] = Module(cubin_of(self.source(file), self._folder))
            shared = STAGE_BYTES if file in NO_RING else SHARED_BYTES
            shared = 0 if name == "read_only" else shared
            self._kernels[name] = self._modules[file].kernel(name, shared)
        return self._kernels[name]

    def stage(self, name: str, stream: int, args: LayerArgs, dependent: bool = False) -> None:
        """Launch one stage of the unfused arm."""
        kernel = self._stage_kernel(name)
        kernel.launch(stream, self._blocks(name), THREADS, (args,), dependent=dependent)

    def _stage_kernel(self, name: str) -> Kernel:
        return self.kernel(FILES.get(name, "unfused.cu"), f"unfused_{name}")

    def _blocks(self, name: str) -> int:
        """Return the blocks of a kernel: attention's later stages have one a task."""
        return {"split": 8 * self.rows, "attend": 8 * self.rows, "merge": self.rows}.get(
            name, BLOCKS
        )

    def unfused(self, stream: int, args: LayerArgs, dependent: bool = False) -> None:
        """Launch a layer, a kernel a stage; ``dependent``: each may begin before the last ends."""
        for name in self.stages:
            self.stage(name, stream, args, dependent)

    def mono(self, stream: int, args: LayerArgs, dependent: bool = False) -> None:
        """Launch a layer as one kernel; ``dependent``: behind another layer, before that ends.

        A dependent launch cannot be cooperative: that all blocks fit is checked when it is bound.
        """
        kernel = self.kernel(*MONO[self.kind])
        kernel.launch(
            stream, BLOCKS, THREADS, (args,), cooperative=not dependent, dependent=dependent
        )

    def read(self, stream: int, address: int, size: int, out: int, blocks: int) -> None:
        """Launch a pure read of ``size`` bytes."""
        arguments = (ctypes.c_void_p(address), ctypes.c_ulonglong(size), ctypes.c_void_p(out))
        self.kernel("unfused.cu", "read_only").launch(stream, blocks, 1024, arguments)


def _stages(kind: Kind, folded: bool) -> tuple[str, ...]:
    """Return the unfused arm's kernels; ``folded``: the output projection merges partitions."""
    attention = ("full",) if kind == "dense" else ("scores", "split" if folded else "attend")
    mlp = ("router", "up", "down") if kind == "sparse" else ("dense_up", "dense_down")
    return ("qkv", *attention, "o", *mlp)
