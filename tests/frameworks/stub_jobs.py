"""Jobs on the stub engines: their programs where the job looks for an engine's own, their arms."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infx import frameworks
from infx.analysis.validity import judge
from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.point import Arm, Model
from infx.domain.record import PointRecord
from tests.job.jobs import arm, records
from tests.job.processes import processes_of

LIMIT_S = 600
"""For four jobs side by side, each with its own client, on a busy machine."""

STUB = Path(__file__).parent / "stub_engine.py"
IMAGE = "pypi:stub==1"

PROGRAMS = {"python3": {"atom.entrypoints.openai_server": "atom", "sglang.launch_server": "sglang"}}
"""Module of ``python3 -m`` -> the engine; ``trtllm-serve`` is a program of its own."""


def make_programs(engines: Path) -> None:
    """Write the programs of all stubs as those of the package ``stub==1`` below ``engines``."""
    bin_folder = engines / "stub-1" / "bin"
    bin_folder.mkdir(parents=True)
    chosen = " ".join(f"{module}) engine={name};;" for module, name in PROGRAMS["python3"].items())
    start = f'exec "{sys.executable}" -P "{STUB}"'
    _write(bin_folder / "python3", f'case "$2" in {chosen} esac; shift 2; {start} "$engine" "$@"')
    _write(bin_folder / "trtllm-serve", f'{start} trtllm "$@"')
    _write(bin_folder / "vllm", f'shift; {start} vllm "$@"')


def _write(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)


def stub_arm(framework: str, tokenizer: Path, **fields: Any) -> Arm:
    """An arm with three synthetic drafts, by the engine's own law."""
    law = frameworks.get(framework).laws[0]
    model = Model(
        name="stub-model",
        prefix="minimaxm3",
        precision="fp8",
        weights="hf:owner/model",
        tokenizer=str(tokenizer),
    )
    defaults: dict[str, Any] = {
        "image": IMAGE,
        "model": model,
        "method": "eagle3",
        "draft": "owner/draft",
        "axes": Axes(conc=0, k=3, max_num_seqs=4, capture_sizes=(4, 8, 12, 16)),
        "acceptance": Acceptance("synthetic", 2.78, law, k=3),
        "start_limit_s": 120,
    }
    return arm(framework, **(defaults | fields))


def run(
    engines: Path, *folders: Path, env: Mapping[str, str] | None = None
) -> list[list[PointRecord]]:
    """Run the jobs of the folders side by side; return the judged records of each."""
    environ = {**os.environ, "INFX_ENGINES": str(engines), **(env or {})}
    command = [sys.executable, "-P", "-m", "infx.job"]
    jobs = [subprocess.Popen([*command, str(f / "job.json")], env=environ) for f in folders]
    assert [job.wait(LIMIT_S) for job in jobs] == [0] * len(jobs)
    assert not any(map(processes_of, folders))
    return [[judge(record, folder) for record in records(folder)] for folder in folders]
