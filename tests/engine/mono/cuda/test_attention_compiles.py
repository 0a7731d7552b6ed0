"""Attention's kernels are machine code for Hopper, without spills and within their registers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from infx.engine.mono.cuda.source import ARCHITECTURE, build_source
from tests.programs import needs

MOST_REGISTERS = 128  # of 65,536 for 512 threads


@pytest.mark.slow
@needs("nvcc")
@pytest.mark.parametrize(("rows", "kv", "index"), [(1, 0, 0), (16, 1, 1), (16, 2, 2)])
def test_kernels_fit(tmp_path: Path, rows: int, kv: int, index: int) -> None:
    source = build_source("attn.cu", {"ROWS": rows, "KV_KIND": kv, "INDEX_KIND": index})
    text = tmp_path / "attn.cu"
    text.write_text(source.text)
    how = [
        "-cubin",
        f"-arch={ARCHITECTURE}",
        "-std=c++17",
        "-Xptxas",
        "-v",
        *("-Werror", "all-warnings"),
        *("-diag-suppress", "177"),  # constants of the shape that attention does not use
    ]
    command = ["nvcc", *how, *source.options, "-o", str(tmp_path / "attn.cubin"), str(text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)]
    spills = [int(n) for n in re.findall(r"(\d+) bytes spill", done.stderr)]
    assert len(registers) == 4
    assert max(registers) <= MOST_REGISTERS
    assert max(spills) == 0
