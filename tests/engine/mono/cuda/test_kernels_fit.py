"""Kernels are machine code for Hopper without warnings and spills, and within their registers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from infx.engine.mono.cuda.setting import KINDS as CACHE_KINDS
from infx.engine.mono.cuda.source import ARCHITECTURE, build_source
from infx.engine.mono.shape import KINDS, Kind
from tests.programs import needs

MOST_REGISTERS = 128  # of 65,536 for 512 threads
# 177: constants of the shape that a kernel does not use.
HOW = ("-cubin", f"-arch={ARCHITECTURE}", "-std=c++17", "-Xptxas", "-v")
HOW += ("-Werror", "all-warnings", "-diag-suppress", "177")


@pytest.mark.slow
@needs("nvcc")
@pytest.mark.parametrize("rows", [1, 8, 16])
@pytest.mark.parametrize(
    ("file", "kernels", "kind", "kv", "index"),
    [
        ("unfused.cu", 6, "sparse", "fp8", "fp8"),
        ("unfused.cu", 6, "sparse", "bf16", "bf16"),
        ("attn.cu", 4, "sparse", "bf16", "bf16"),
        ("attn.cu", 4, "sparse", "fp8", "fp8"),
        ("attn.cu", 4, "sparse", "mxfp4", "mxfp4"),
        ("mono.cu", 1, "sparse", "bf16", "bf16"),
        ("mono.cu", 1, "sparse", "fp8", "fp8"),
        ("mono.cu", 1, "sparse", "mxfp4", "mxfp4"),
        ("dense.cu", 2, "sparse_dense", "fp8", "fp8"),
        ("mono_dense.cu", 1, "sparse_dense", "fp8", "fp8"),
        ("full.cu", 1, "dense", "bf16", "fp8"),
        ("full.cu", 1, "dense", "fp8", "fp8"),
        ("full.cu", 1, "dense", "mxfp4", "fp8"),
        ("mono_dense.cu", 1, "dense", "fp8", "fp8"),
        ("mono_dense.cu", 1, "dense", "mxfp4", "fp8"),
    ],
)
def test_kernels_fit(
    tmp_path: Path, file: str, kernels: int, kind: Kind, kv: str, index: str, rows: int
) -> None:
    caches = {"KV_KIND": CACHE_KINDS.index(kv), "INDEX_KIND": CACHE_KINDS.index(index)}
    source = build_source(file, {"ROWS": rows, "LAYER_KIND": KINDS.index(kind), **caches})
    text = tmp_path / file
    text.write_text(source.text)
    command = ["nvcc", *HOW, *source.options, "-o", str(tmp_path / "kernel.cubin"), str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill", done.stderr)]
    assert len(registers) == kernels
    assert max(registers) <= MOST_REGISTERS
    assert max(spills) == 0
