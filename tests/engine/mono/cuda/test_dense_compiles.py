"""Kernels of layers with a dense MLP are machine code for Hopper, without spills."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from infx.engine.mono.cuda.source import ARCHITECTURE, build_source
from infx.engine.mono.shape import KINDS, Kind
from tests.programs import needs

MOST_REGISTERS = 128  # of 65,536 for 512 threads


@pytest.mark.slow
@needs("nvcc")
@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize(
    ("file", "kind", "kv", "kernels"),
    [
        ("dense.cu", "sparse_dense", 1, 2),
        ("full.cu", "dense", 0, 1),
        ("full.cu", "dense", 1, 1),
        ("full.cu", "dense", 2, 1),
        ("mono_dense.cu", "sparse_dense", 1, 1),
        ("mono_dense.cu", "dense", 1, 1),
        ("mono_dense.cu", "dense", 2, 1),
    ],
)
def test_kernels_fit(
    tmp_path: Path, file: str, kind: Kind, kv: int, kernels: int, rows: int
) -> None:
    numbers = {"ROWS": rows, "KV_KIND": kv, "ATTENTION": 1, "LAYER_KIND": KINDS.index(kind)}
    source = build_source(file, numbers)
    text = tmp_path / file
    text.write_text(source.text)
    how = ["-cubin", f"-arch={ARCHITECTURE}", "-std=c++17", "-Xptxas", "-v"]
    # Constants of the shape that these kernels do not use.
    how += ["-Werror", "all-warnings", "-diag-suppress", "177"]
    command = ["nvcc", *how, *source.options, "-o", str(tmp_path / "a.cubin"), str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill", done.stderr)]
    assert len(registers) == kernels
    assert max(registers) <= MOST_REGISTERS
    assert max(spills) == 0
