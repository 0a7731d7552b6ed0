"""Where files are found: a folder's own first, the package's behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.findings import Where
from tests.config.sample_project import FILES, MATRIX, load, write_project


def test_the_nearest_folder_with_configs(tmp_path: Path) -> None:
    write_project(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert Project.find(below).root == tmp_path.resolve()


def test_no_configs_anywhere_is_the_folder_itself(tmp_path: Path) -> None:
    project = Project.find(tmp_path)
    assert project.root == tmp_path.resolve()
    assert project.matrix_path("quickstart").is_file()
    assert load_matrix([project.matrix_path("quickstart")], project).entries


def test_own_files_take_precedence_one_by_one(tmp_path: Path) -> None:
    own, behind = tmp_path / "own", tmp_path / "behind"
    write_project(behind)
    (own / "recipes").mkdir(parents=True)
    (own / "recipes/mini.yaml").write_text(FILES["recipes/mini.yaml"].replace("2, d", "7, d"))
    project = Project(own, behind)
    (entry,) = load_matrix([project.matrix_path("demo")], project).entries
    assert entry.recipe.options["threads"] == 7
    assert entry.recipe.where.file == "recipes/mini.yaml"
    assert entry.cluster.where.file == str(behind / "configs/clusters.yaml")


def test_names_and_suggestions(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    assert project.matrices() == ("demo",)
    assert (project.recipes(), project.goldens()) == (("mini",), ("curve",))
    assert project.matrix_path("demo") == project.root / MATRIX
    assert project.matrix_path("some/where.yaml") == Path("some/where.yaml")
    with pytest.raises(ConfigError) as raised:
        project.matrix_path("dmeo")
    assert raised.value.findings[0].code == "file-not-found"
    assert raised.value.findings[0].hint == "did you mean `demo`?"
    with pytest.raises(ConfigError, match="there is no matrix"):
        project.matrix_path("m" * 300)
    for n in range(30):
        (tmp_path / f"configs/x{n}.yaml").touch()
    with pytest.raises(ConfigError) as raised:
        project.matrix_path("quite-other")
    hint = raised.value.findings[0].hint
    assert hint == "give the path of a file, or add configs/quite-other.yaml"


def test_inputs_are_every_file_that_was_read(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    assert set(load(project).inputs) == set(FILES)
    (tmp_path / "recipes/mini.yaml").write_text(FILES["recipes/mini.yaml"] + "# more\n")
    before = load(project).inputs
    (tmp_path / "recipes/mini.yaml").write_text(FILES["recipes/mini.yaml"])
    after = load(project).inputs
    assert {name for name in before if before[name] != after[name]} == {"recipes/mini.yaml"}


def test_shown_and_located_are_inverse(tmp_path: Path) -> None:
    project = write_project(tmp_path / "p")
    for path in (project.root / MATRIX, (tmp_path / "elsewhere.yaml").resolve()):
        assert project.located(project.shown(path)) == path


def test_source_line(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    assert project.source_line(Where(MATRIX, 3, 1)) == "  precision: fp32"
    assert project.source_line(Where(MATRIX, 999, 1)) is None
    assert project.source_line(Where("none.yaml", 1, 1)) is None
