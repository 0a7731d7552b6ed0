"""Kernels on the CPU: the device code compiled by g++, see ``emulated.h``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from infx.engine.mono.cuda.arguments import args_of
from infx.engine.mono.cuda.source import KERNELS

_SHIM = '#pragma once\n#include "%s"\n'
_SHIMS = {
    "common.cuh": "emulated.h",
    "attn_ptx.cuh": "emulated.h",
    "stream.cuh": "emulated_stream.h",
}
# What mono does where rows are alone: split makes heads itself and waits for scores only.
_DIRECT_CU = """#include "attn.cuh"
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
"""
# The experts as mono has them where no barrier stands before `up` and `down` (BY_MAIL): one kernel,
# whose ring goes on from one to the other, and which waits for logits and mids themselves.
_MAIL_CU = """
static void mail_experts(LayerArgs a) {
    machine.late = true;
    Stream s;
    s.open(smem);
    Places places;
    places.open(smem);
    fill_up_shared(a, s);
    deal_shared(a, smem);
    PieceColumns x;
    load_up_shared(a, x, smem);
    deal_experts<true>(a, smem);
    Ahead ahead(smem);
    ask_up(a, ahead, smem);
    const Deal& deal = deal_of(smem);
    UpFeed up(a, deal, s);
    up.fill(a, deal, s);
    DownFeed down(a, deal, s);
    if (!up.left) down.fill(a, deal, s);
    run_up(a, s, places, x, ahead, up, down, smem);
    __syncthreads();
    down.fill(a, deal, s);
    Output outputs[OUT_OUTPUTS];
    fetch_outputs(a, a.mid, outputs);
    run_down<true>(a, s, down, outputs, smem);
}
"""
_MADE = {"direct.cu": _DIRECT_CU, "mail.cu": _MAIL_CU}
_ENTRY = """%s
static Kernel kernels[] = {%s};
extern "C" void run_kernel(int number, int block, const LayerArgs* a) {
    blockIdx.x = block, run_block(kernels[number], *a);
}
"""
# What each file of kernels/ has that takes `LayerArgs`.
ATTENTION = {
    "attn.cu": ("unfused_scores", "unfused_attend", "unfused_split", "unfused_merge"),
    "direct.cu": ("direct_scores", "direct_attend"),
}
DENSE_LAYER = {
    "unfused.cu": ("unfused_qkv", "unfused_o"),
    "full.cu": ("unfused_full",),
    "dense.cu": ("unfused_dense_up", "unfused_dense_down"),
}
EXPERTS = {
    "unfused.cu": ("unfused_o", "unfused_router", "unfused_up", "unfused_down"),
    "mail.cu": ("mail_experts",),
}


class Emulated:
    """A build of some files of kernels/; ``defines`` replace numbers of them."""

    def __init__(
        self, folder: Path, files: Mapping[str, tuple[str, ...]], defines: Mapping[str, int]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for path in KERNELS.iterdir():
            shutil.copy(path, folder)
        for name, header in _SHIMS.items():
            (folder / name).write_text(_SHIM % header)
            shutil.copy(Path(__file__).with_name(header), folder)
        for name, text in _MADE.items():
            (folder / name).write_text(text)
        self._entries = [name for names in files.values() for name in names]
        includes = "\n".join(f'#include "{file}"\n#undef KERNEL' for file in files)
        (folder / "all.cpp").write_text(_ENTRY % (includes, ", ".join(self._entries)))
        made = folder / "all.so"
        numbers = [f"-D{name}={number}" for name, number in defines.items()]
        how = ["-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run(["g++", *how, *numbers, "-o", made, folder / "all.cpp"], check=True)
        self._run = ctypes.CDLL(str(made)).run_kernel

    def launch(self, name: str, blocks: Iterable[int], tensors: Mapping[str, Tensor]) -> None:
        """Run some blocks of the kernel ``name``, one after another."""
        args = args_of(tensors)
        for block in blocks:
            self._run(self._entries.index(name), block, ctypes.byref(args))
