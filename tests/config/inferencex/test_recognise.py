"""Files of InferenceX are known by what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.inferencex.recognise import is_master
from tests.config.inferencex.sample import AGENTIC, FIXED, MULTI

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "text", [FIXED, AGENTIC, MULTI, FIXED.replace("search-space", "'search-space'")]
)
def test_a_master_configuration(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    assert is_master(tmp_path / "m.yaml")


@pytest.mark.parametrize(
    "text",
    ["", "a:\n  search-space: 1\n", "a:\n  fixed-seq-len: 1\n", "# fixed-seq-len: search-space:\n"],
)
def test_another_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    assert not is_master(tmp_path / "m.yaml")


def test_no_matrix_of_infx_is_one() -> None:
    matrices = list((ROOT / "configs").glob("*.yaml"))
    assert matrices
    assert not any(map(is_master, matrices))
    assert not is_master(ROOT / "configs")
