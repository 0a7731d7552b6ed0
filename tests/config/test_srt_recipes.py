"""A recipe of infx that names one of srt-slurm: read, pinned, and refused where srtctl would."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.library import Library
from infx.config.matrix import Recipe
from infx.domain.findings import Where
from infx.domain.point import Delegated
from tests.config.sample_project import write_project

SRT = """\
base:
  schema: 2
  name: disagg
override_tp4: {}
zip_override_conc: {}
"""
RECIPE = """\
framework: vllm
model: {name: m, weights: "hf:o/m"}
hardware: [gb200]
srt:
"""


def read(section: str, root: Path, srt: str = SRT) -> tuple[Recipe | None, Library]:
    text = RECIPE + "".join(f"  {line}\n" for line in section.splitlines())
    project = write_project(root, {"recipes/mine.yaml": text})
    (root / "srt").mkdir(exist_ok=True)
    (root / "srt" / "mine.yaml").write_text(srt)
    library = Library(project)
    return library.recipe("mine", Where("--")), library


def test_the_whole_text_is_pinned(tmp_path: Path) -> None:
    section = "recipe: srt/mine.yaml:override_tp4\ngpus: 12\nset: {a.b: '1'}"
    found, library = read(section, tmp_path)
    assert not library.report.findings
    assert found
    assert found.delegated == Delegated(
        text=SRT, gpus=12, selector="override_tp4", set={"a.b": "1"}
    )
    assert "srt/mine.yaml" in library.inputs  # a saved plan refuses when it changed


@pytest.mark.parametrize(
    ("named", "srt"),
    [
        ("srt/mine.yaml", "schema: 2\nname: x\n"),
        ("srt/mine.yaml:base", SRT),
        ("srt/mine.yaml:zip_override_conc[1]", SRT),
    ],
)
def test_what_may_be_named(named: str, srt: str, tmp_path: Path) -> None:
    found, library = read(f"recipe: {named}\ngpus: 8", tmp_path, srt)
    assert not library.report.findings
    assert found
    assert found.delegated


@pytest.mark.parametrize(
    ("section", "srt", "told"),
    [
        ("recipe: srt/none.yaml\ngpus: 8", SRT, "there is no srt recipe srt/none.yaml"),
        ("recipe: srt/mine.yaml\ngpus: 8", SRT, "which variant? (it has base, override_tp4"),
        ("recipe: srt/mine.yaml:override_tp8\ngpus: 8", SRT, "did you mean `override_tp4`?"),
        ("recipe: srt/mine.yaml:override_x\ngpus: 8", "schema: 2\n", "no variants"),
        ("recipe: srt/mine.yaml\ngpus: 8", "name: x\n", "no recipe of schema 2"),
        ("recipe: srt/mine.yaml\ngpus: 8", "- x\n", "is no mapping"),
        ("recipe: srt/mine.yaml\ngpus: 8", "a: [\n", "srt/mine.yaml:"),
        ("recipe: srt/mine.yaml:base", SRT, "gpus"),
        ("recipe: srt/mine.yaml:base\ngpus: 0", SRT, "gpus"),
        ("recipe: srt/mine.yaml:base\ngpus: 8\nset: {name: x}", SRT, "infx writes `name`"),
    ],
)
def test_faults(section: str, srt: str, told: str, tmp_path: Path) -> None:
    _, library = read(section, tmp_path, srt)
    [finding] = library.report.findings
    assert told in str(finding)
    assert finding.where
    assert finding.where.file == "recipes/mine.yaml"
