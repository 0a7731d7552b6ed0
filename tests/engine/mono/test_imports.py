"""The framework is the standard library and itself: no model, no torch, no numba."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from infx.engine.mono.build import FRAMEWORK

# Back ends stand in folders of their own, beside the framework's modules.
MODULES = sorted(FRAMEWORK.glob("*.py"))
OWN = "infx.engine.mono"


def imported(source: str) -> set[str]:
    """Return what a source imports, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found.add(f"?{ast.unparse(node)}")
    return found


def foreign(source: str) -> set[str]:
    """Return the imports that are neither the standard library's nor a module of the framework."""
    own = {OWN, *(f"{OWN}.{path.stem}" for path in MODULES)}
    allowed = sys.stdlib_module_names
    return {n for n in imported(source) if n.split(".")[0] not in allowed and n not in own}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_imports_nothing_foreign(path: Path) -> None:
    assert not foreign(path.read_text())


def test_the_walk_finds_modules_and_would_find_each_forbidden_import() -> None:
    assert {"plan", "check", "interpret", "build"} <= {path.stem for path in MODULES}
    for line in (
        "import torch",
        "import numba as nb",
        "from numpy import float32",
        "from infx.engine.shapes import ModelConfig",
        "from infx.engine.model import reference",
        "from infx.domain.codes import CODES",
        "from infx.engine.mono.cpu import layer",
        "from . import plan",
        "importlib.import_module('torch')",
    ):
        assert foreign(f"def f():\n    {line}\n"), line
    assert not foreign("import json\nfrom infx.engine.mono.table import Table")


def test_running_the_framework_loads_no_library() -> None:
    code = (
        "import sys\n"
        "from infx.engine.mono import build, check, interpret, plan, walk\n"
        "loaded = {'torch', 'numba', 'numpy', 'infx.engine.shapes'} & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
