"""Golden lengths: the shipped curve, and how a server's acceptance is read from one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.config.library import Library
from infx.config.matrix import SpeculationSpec
from infx.config.project import Project
from infx.domain.acceptance import Acceptance
from infx.domain.errors import ConfigError
from infx.domain.findings import Where
from infx.golden import acceptance
from tests.public_data import shared

ROOT = Path(__file__).resolve().parents[2]
WHERE = Where("configs/x.yaml", 9, 3)
SPEC = SpeculationSpec(
    method="eagle3", golden="curve", thinking="on", lengths={1: 1.79, 3: 2.78}, where=WHERE
)


def test_synthetic_at_the_golden_length() -> None:
    assert acceptance(SPEC, 3, "min-variance") == Acceptance(
        mode="synthetic", length=2.78, law="min-variance", golden="curve", thinking="on", k=3
    )


def test_the_law_that_is_named_stands_over_the_engines() -> None:
    named = replace(SPEC, law="geometric")
    assert acceptance(named, 3, "min-variance").law == "geometric"


def test_real_without_drafts_or_without_a_curve() -> None:
    assert acceptance(SPEC, 0, "min-variance") == Acceptance()
    bare = SpeculationSpec(method="eagle3", where=WHERE)
    assert acceptance(bare, 3, "min-variance") == Acceptance(k=3)


def test_never_interpolated() -> None:
    with pytest.raises(ConfigError) as raised:
        acceptance(SPEC, 2, "min-variance")
    (finding,) = raised.value.findings
    assert (finding.code, finding.where) == ("golden-k-missing", WHERE)
    assert finding.hint == "it holds K = 1, 3"


def test_the_shipped_curve() -> None:
    library = Library(Project.find(ROOT))
    curves = library.golden("minimaxm3_eagle3_gqa", WHERE)
    library.report.check()
    assert curves is not None
    assert curves["on"] == {1: 1.79, 2: 2.39, 3: 2.78, 4: 3.02, 5: 3.21, 6: 3.3, 7: 3.52, 8: 3.51}
    assert curves["off"] == {1: 1.83, 2: 2.46, 3: 2.97, 4: 3.29, 5: 3.72, 6: 3.76, 7: 3.75, 8: 3.93}


def test_public_golden_files_are_read_as_they_are() -> None:
    folder = shared("data/inferencex")
    project = Project(folder, folder)
    names = project.goldens()
    assert "dsv4_mtp" in names
    library = Library(project)
    for name in names:
        curves = library.golden(name, WHERE)
        library.report.check()
        assert curves
        assert all(1 <= length <= k + 1 for c in curves.values() for k, length in c.items())
