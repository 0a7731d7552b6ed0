"""The files that infx ships: they load, fast, and say what the quickstart promises."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from infx.config.load import load_matrix
from infx.config.matrix import Matrix
from infx.config.project import Project

ROOT = Path(__file__).resolve().parents[2]


def quickstart() -> Matrix:
    project = Project.find(ROOT)
    return load_matrix([project.matrix_path("quickstart")], project)


def test_the_two_entries() -> None:
    real, own = quickstart().entries
    assert (real.framework, real.image) == ("llamacpp", "pypi:xllamacpp==2026.10.11549")
    assert own.framework == "infx"
    assert own.speculation is not None
    assert own.speculation.lengths[3] == 2.78
    assert any(rule.values.get("queueing") for rule in own.scenarios[0].include)
    assert [e.limit for entry in (real, own) for e in entry.evaluations] == [6, 64]


def test_every_matrix_recipe_and_golden_file_is_sound() -> None:
    project = Project.find(ROOT)
    matrix = load_matrix([project.matrix_path(name) for name in project.matrices()], project)
    used = {name for name in matrix.inputs if name.startswith(("recipes/", "golden_al/"))}
    assert used == {str(p.relative_to(ROOT)) for p in ROOT.glob("recipes/*.yaml")} | {
        str(p.relative_to(ROOT)) for p in ROOT.glob("golden_al/*.yaml")
    }


def test_it_loads_in_50_ms() -> None:
    quickstart()
    assert min(_seconds() for _ in range(7)) < 0.05


def _seconds() -> float:
    start = time.perf_counter()
    quickstart()
    return time.perf_counter() - start


def test_a_sound_matrix_does_not_import_pydantic() -> None:
    """It costs 0.2 s, and a whole `infx plan` has 0.6 s."""
    code = """
import sys
from pathlib import Path
from infx.config.load import load_matrix
from infx.config.project import Project
project = Project.find(Path("."))
load_matrix([project.matrix_path("quickstart")], project)
print("pydantic" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"
