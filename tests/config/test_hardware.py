"""configs/hardware.yaml: what a sound file becomes, and each fault at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.hardware import read_hardware
from infx.config.library import Library
from infx.config.load import load_matrix
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.hardware import Price, Provisioned
from tests.config.sample_project import MATRIX, write_project

ROOT = Path(__file__).resolve().parents[2]
FILE = "configs/hardware.yaml"
SOUND = """\
h200:
  prices:
    - {tier: rental, usd-gpu-hour: 2.5, source: our contract, as-of: "2026-11"}
    - {tier: own, usd-gpu-hour: 2, source: accounts, as-of: "2026-11-01"}
  provisioned: {watts-gpu: 1700, source: the site, as-of: "2026-11"}
cpu: {}
"""


def faults(root: Path, text: str) -> list[tuple[str, int, str]]:
    with pytest.raises(ConfigError) as error:
        read_hardware(write_project(root, {FILE: text}))
    found = error.value.findings
    assert all(f.where and f.where.file == FILE for f in found)
    return [(f.code, f.where.line if f.where else 0, f.sentence) for f in found]


def test_a_sound_file(tmp_path: Path) -> None:
    found = read_hardware(write_project(tmp_path, {FILE: SOUND}))
    first = Price(tier="rental", usd_gpu_hour=2.5, source="our contract", as_of="2026-11")
    assert found["h200"].price == first
    assert [price.tier for price in found["h200"].prices] == ["rental", "own"]
    assert found["h200"].provisioned == Provisioned(
        watts_gpu=1700, source="the site", as_of="2026-11"
    )
    assert (found["cpu"].price, found["cpu"].provisioned) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("usd-gpu-hour: 2.5", "usd-gpu-hour: free", "wrong-type", 3),
        ("usd-gpu-hour: 2.5", "usd-gpu-hour: 0", "out-of-range", 3),
        ("usd-gpu-hour: 2.5", "usd-gpu-hr: 2.5", "unknown-key", 3),
        ('as-of: "2026-11-01"', 'as-of: "2026-13"', "bad-name", 4),
        ('as-of: "2026-11-01"', "as-of: 2026", "wrong-type", 4),
        (", source: accounts", "", "missing-key", 4),
        ("tier: own", "tier: rental", "duplicate-key", 4),
        ("watts-gpu: 1700", "watts-gpu: 0", "out-of-range", 5),
        ("cpu: {}", "cpu: 2.1", "wrong-type", 6),
        ("cpu: {}", "cpu: {price: []}", "unknown-key", 6),
        ("cpu: {}", "c/u: {}", "bad-name", 6),
    ],
)
def test_a_fault_stands_at_its_place(
    tmp_path: Path, old: str, new: str, code: str, line: int
) -> None:
    assert old in SOUND
    told = faults(tmp_path, SOUND.replace(old, new))
    assert (code, line) in [(found, at) for found, at, _ in told], told


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    text = SOUND.replace("usd-gpu-hour: 2.5", "usd-gpu-hour: x").replace("1700", "none")
    assert [line for _, line, _ in faults(tmp_path, text)] == [3, 5]


def test_a_project_without_the_file_has_that_of_infx(tmp_path: Path) -> None:
    own = write_project(tmp_path, {})
    assert read_hardware(Project(own.root, ROOT)).keys() == read_hardware(Project.find(ROOT)).keys()
    assert read_hardware(Project(own.root, tmp_path / "nothing")) == {}


def test_ours_names_hardware_of_clusters_with_a_source_for_each_constant() -> None:
    project = Project.find(ROOT)
    classes = {cluster.hardware for cluster in Library(project).clusters().values() if cluster}
    ours = read_hardware(project)
    assert set(ours) <= classes
    assert all(price.source and price.as_of for one in ours.values() for price in one.prices)
    assert [price.usd_gpu_hour for price in ours["mi355x"].prices] == [1.48, 1.90, 2.10]


def test_it_is_no_matrix(tmp_path: Path) -> None:
    project = Project.find(ROOT)
    assert "hardware" not in project.matrices()
    with pytest.raises(ConfigError, match="prices of hardware"):
        load_matrix([ROOT / FILE], project)


def test_a_sweep_hears_of_a_fault_before_it_spends_anything(tmp_path: Path) -> None:
    project = write_project(tmp_path, {FILE: SOUND.replace("2.5", "free")})
    with pytest.raises(ConfigError) as error:
        load_matrix([tmp_path / MATRIX], project)
    assert [str(f.where) for f in error.value.findings] == [f"{FILE}:3:36"]


def test_the_state_of_the_constants_is_counted(tmp_path: Path) -> None:
    assert set(read_hardware(write_project(tmp_path / "a", {FILE: f"version: 2\n{SOUND}"}))) == {
        "h200",
        "cpu",
    }
    for number, said in enumerate(("0", "true", "one", "[]")):
        found = faults(tmp_path / f"b{number}", f"version: {said}\n{SOUND}")
        assert found == [("out-of-range", 1, "`version` counts from 1")]


def test_our_own_constants_have_a_version() -> None:
    assert (ROOT / FILE).read_text().count("\nversion: 1\n") == 1
