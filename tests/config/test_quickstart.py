"""The files that infx ships: they load, fast, and say what the quickstart promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infx.config.library import Library
from infx.config.load import load_matrix
from infx.config.matrix import Matrix
from infx.config.project import Project
from infx.domain.findings import Where
from infx.engine.weights import identity
from tests.quiet_machine import quiet_s

ROOT = Path(__file__).resolve().parents[2]


def quickstart() -> Matrix:
    project = Project.find(ROOT)
    return load_matrix([project.matrix_path("quickstart")], project)


def test_the_two_entries() -> None:
    real, own = quickstart().entries
    assert (real.framework, real.image) == ("llamacpp", "pypi:xllamacpp==2026.10.11549")
    assert own.framework == "infx"
    assert own.speculation is not None
    assert own.speculation.golden == "minimaxm3-mini_eagle3"  # measured on these very weights
    assert 2.2 < own.speculation.lengths[3] <= 4
    assert all(
        one.bars == {"strict-match": 0.9, "flexible-extract": 0.9} for one in own.evaluations
    )
    assert any(rule.values.get("queueing") for rule in own.scenarios[0].include)
    assert [e.limit for entry in (real, own) for e in entry.evaluations] == [6, 128]


def test_every_matrix_recipe_and_golden_file_is_sound() -> None:
    project = Project.find(ROOT)
    matrix = load_matrix([project.matrix_path(name) for name in project.matrices()], project)
    used = {name for name in matrix.inputs if name.startswith("recipes/")}
    assert used == {str(p.relative_to(ROOT)) for p in ROOT.glob("recipes/*.yaml")}
    library = Library(project)
    curves = {name: library.golden(name, Where(name)) for name in project.goldens()}
    library.report.check()
    assert all(curves.values())
    assert curves.keys() == {path.stem for path in ROOT.glob("golden_al/*.yaml")}


def test_the_recipe_names_the_shipped_checkpoint() -> None:
    recipe = quickstart().entries[1].recipe
    assert (recipe.model.weights, recipe.model.revision) == ("shipped", identity("shipped"))


def test_it_loads_in_50_ms() -> None:
    assert quiet_s(quickstart, rounds=7) < 0.05


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
