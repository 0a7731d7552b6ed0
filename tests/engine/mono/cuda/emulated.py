"""Attention's kernels on the CPU: the device code compiled by g++, see ``emulated.h``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from infx.engine.mono.cuda.arguments import args_of
from infx.engine.mono.cuda.source import KERNELS

ENTRIES = (
    "unfused_scores",
    "unfused_attend",
    "unfused_split",
    "unfused_merge",
    "direct_scores",
    "direct_attend",
)
KINDS = {"bf16": 0, "fp8": 1, "mxfp4": 2}
_SHIM = '#pragma once\n#include "emulated.h"\n'
# What mono does where rows are alone: split makes heads itself and waits for scores only.
_ENTRY = """#include "attn.cu"
static void direct_scores(LayerArgs a) {
    ScoreAhead ahead;
    fetch_scores(a, ahead);
    stage_scores(a, ahead, smem, false);
}
static void direct_attend(LayerArgs a) {
    const StepRows s = step_rows(a);
    fetch_split(a, s, blockIdx.x, smem);
    stage_attend(a, s, blockIdx.x, smem, rows_alone(s) ? DIRECT : STAGED_BEFORE);
}
static Kernel kernels[] = {%s};
extern "C" void run_kernel(int number, int blocks, const LayerArgs* a) {
    for (int block = 0; block < blocks; block++) blockIdx.x = block, run_block(kernels[number], *a);
}
"""


class Emulated:
    """A build of one width and one pair of caches."""

    def __init__(self, folder: Path, rows: int, kv: str, index: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for path in (*KERNELS.glob("attn*"), KERNELS / "args.cuh", KERNELS / "shape.cuh"):
            shutil.copy(path, folder)
        for name in ("common.cuh", "attn_ptx.cuh"):
            (folder / name).write_text(_SHIM)
        shutil.copy(Path(__file__).with_name("emulated.h"), folder)
        (folder / "all.cpp").write_text(_ENTRY % ", ".join(ENTRIES))
        made = folder / "all.so"
        kinds = [f"-DROWS={rows}", f"-DKV_KIND={KINDS[kv]}", f"-DINDEX_KIND={KINDS[index]}"]
        how = ["-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run(["g++", *how, *kinds, "-o", made, folder / "all.cpp"], check=True)
        self._run = ctypes.CDLL(str(made)).run_kernel

    def launch(self, name: str, blocks: int, tensors: Mapping[str, Tensor]) -> None:
        """Run the kernel ``name``, block after block."""
        self._run(ENTRIES.index(name), blocks, ctypes.byref(args_of(tensors)))
