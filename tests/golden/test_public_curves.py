"""The shipped golden curves: as published, with their source, and typed nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

from infx.config.library import Golden, Library
from infx.config.project import Project
from infx.domain.findings import Where
from tests.public_data import shared

ROOT = Path(__file__).resolve().parents[2]
WHERE = Where("test", 1, 1)
FORCED = "minimaxm31_dspark"
"""A length that public runs forced, of a model that has no published curve."""


def curves(project: Project, name: str) -> Golden:
    library = Library(project)
    found = library.golden(name, WHERE)
    library.report.check()
    assert found is not None
    return found


def ours() -> dict[str, Golden]:
    project = Project(ROOT, ROOT)
    return {name: curves(project, name) for name in project.goldens()}


def test_every_public_curve_is_here_value_by_value() -> None:
    folder = shared("data/inferencex")
    project = Project(folder, folder)
    names = project.goldens()
    assert len(names) == 9
    held = ours()
    for name in names:
        assert held[name] == curves(project, name), name


def test_every_curve_tells_its_source_in_our_words() -> None:
    folder = shared("data/inferencex") / "golden_al"
    for path in folder.glob("*.yaml"):
        text = (ROOT / "golden_al" / path.name).read_text()
        run = re.search(r"runs/(\d+)", path.read_text())
        assert run
        assert run[1] in text
        assert "github.com/SemiAnalysisAI/InferenceX" in text
        theirs = {line for line in path.read_text().splitlines() if line.startswith("# ")}
        assert not theirs & set(text.splitlines())
    assert "No golden curve of this model is published" in " ".join(
        (ROOT / f"golden_al/{FORCED}.yaml").read_text().replace("#", "").split()
    )


def test_a_curve_need_not_grow_with_k() -> None:
    on = ours()["minimaxm3_eagle3_gqa"]["on"]
    assert on[8] < on[7]


def test_no_length_is_typed_in_a_recipe_or_a_matrix() -> None:
    """A length is found by (file, thinking, K) alone; so are the flags that would carry one."""
    lengths = {f"{x:.2f}" for g in ours().values() for c in g.values() for x in c.values()}
    assert "2.78" in lengths
    carriers = r"acceptance[-_](length|rate)|SIMULATE_ACC|FORCE_NUM_ACCEPTED|synthetic_acceptance"
    said = re.compile(
        rf"(?<![\d.])({'|'.join(map(re.escape, sorted(lengths)))})(?![\d.])|{carriers}"
    )
    assert said.search("length: 2.78")
    assert said.search("SGLANG_SIMULATE_ACC_LEN: 3")
    files = [*(ROOT / "recipes").glob("*.yaml"), *(ROOT / "configs").glob("*.yaml")]
    assert len(files) > 4
    for path in files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not said.search(line), f"{path.name}:{number}: {line}"
