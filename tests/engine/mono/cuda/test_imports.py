"""A machine with a GPU may have torch and numpy alone: what is run there imports nothing else."""

from __future__ import annotations

import subprocess
import sys

# What the bench imports at its first use, beside its own modules.
LATER = ("infx.engine.model.attention", "infx.engine.model.experts", "infx.engine.model.layers")
CODE = """
import importlib, sys, sysconfig
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ImportError(f"{{name}} is not there")
sys.meta_path.insert(0, Refused())
for name in {names}:
    importlib.import_module(name)
"""


def absent() -> set[str]:
    """Return infx's dependencies that torch and numpy do not bring."""
    return {"msgspec", "typer", "rich", "numba", "yaml", "aiohttp", "tokenizers", "safetensors"}


def run(*names: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(absent=absent(), names=names)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_bench_needs_torch_alone() -> None:
    done = run("infx.engine.mono.cuda.bench", *LATER)
    assert done.returncode == 0, done.stderr


def test_an_import_of_something_else_would_be_seen() -> None:
    done = run("infx.domain.serial")
    assert "msgspec is not there" in done.stderr
