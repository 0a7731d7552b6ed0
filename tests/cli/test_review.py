"""infx review: exit codes, the text, and one JSON object."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import INFX, ROOT, as_json, environment, here
from tests.review.failing import FAILING, corrected
from tests.review.minimax_m3 import minimax_m3, write


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(minimax_m3(), tmp_path_factory.mktemp("review") / "m3")


def test_warnings_exit_with_0_and_strictly_with_1(public: Path) -> None:
    found = here("review", public)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("WARN  15 text agrees with the change: ")
    assert "\nPASS  10 no engine patch: " in found.stdout
    assert "\nWARN: SemiAnalysisAI/InferenceX#" in found.stdout
    assert ": 1 WARN, 13 PASS, 2 N/A\n" in found.stdout
    assert max(map(len, found.stdout.partition("\nnote")[0].splitlines())) <= 120
    assert len(found.stdout.splitlines()) < 30
    assert "are synthetic" in found.stdout
    assert here("review", public, "--strict").returncode == 1


def test_all_that_passes_exits_with_0(tmp_path: Path) -> None:
    folder = write(corrected(), tmp_path / "b")
    assert here("review", folder, "--strict").returncode == 0


@pytest.mark.parametrize("number", [0, 14])
def test_a_failure_exits_with_1(tmp_path: Path, number: int) -> None:
    folder = write(FAILING[number][0](corrected()), tmp_path / "b")
    found = here("review", folder)
    assert found.returncode == 1
    assert f"FAIL  {number:2} " in found.stdout


def test_a_reader_who_leaves_changes_no_verdict(tmp_path: Path) -> None:
    folder = write(FAILING[0][0](corrected()), tmp_path / "b")
    read, written = os.pipe()
    os.close(read)
    words = [*INFX, "review", str(folder)]
    done = subprocess.run(words, cwd=ROOT, env=environment(), stdout=written, check=False)
    os.close(written)
    assert done.returncode == 1


def test_json_holds_every_check_with_its_evidence(public: Path) -> None:
    found = as_json(here("review", public, "--json"))
    assert (found["schema"], found["ok"], found["data"]["verdict"]) == (
        "infx.review/1",
        True,
        "WARN",
    )
    checks = found["data"]["checks"]
    assert [check["number"] for check in checks] == list(range(16))
    assert len(checks[15]["evidence"]) == 3
    assert all(check["sentence"] for check in checks)
    assert not as_json(here("review", public, "--json", "--strict"))["ok"]


def test_what_is_no_bundle_never_passes(public: Path, tmp_path: Path) -> None:
    assert here("review", tmp_path / "none").returncode == 2
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08")
    found = here("review", tmp_path / "cut.tar.gz", "--json")
    assert found.returncode == 2
    assert as_json(found)["diagnostics"][0]["code"] == "bad-bundle"


def test_a_project_with_rules_of_its_own_gets_their_schemas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "configs/review").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert here("config", "schema", "--write").returncode == 0
    written = {path.name for path in (tmp_path / "configs/schema/review").iterdir()}
    assert {"bundle.json", "bars.json", "labels.json"} <= written
