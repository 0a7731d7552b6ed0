"""The wheel, installed elsewhere, carries configs, recipes and golden lengths with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.slow


def run(*argv: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv], cwd=cwd, env={**os.environ, **env}, capture_output=True,
        text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", folder, ROOT, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("infx-*.whl")
    site = folder / "site"
    zipfile.ZipFile(wheel).extractall(site)
    return site


def infx(site: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable, "-m", "infx", *argv, cwd=cwd, PYTHONPATH=str(site), PYTHONSAFEPATH="1"
    )


def test_the_wheel_plans_the_quickstart_outside_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    done = infx(installed, tmp_path, "plan", "quickstart", "-o", "plan.json", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]
    inputs = json.loads((tmp_path / "plan.json").read_text())["inputs"]
    assert len(inputs) >= 5
    assert all(name.startswith(str(installed)) for name in inputs)
    again = infx(installed, tmp_path, "plan", "plan.json")
    assert again.returncode == 0, again.stderr


def test_a_folder_with_its_own_configs_takes_precedence(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/quickstart.yaml").write_text("mine: {}\n")
    done = infx(installed, tmp_path, "plan", "quickstart")
    assert done.returncode == 2
    assert "configs/quickstart.yaml:1:" in done.stderr
    assert "missing-key" in done.stderr


def test_the_wheel_holds_no_tests_and_no_results(installed: Path) -> None:
    names = {path.name for path in installed.iterdir()}
    assert all(name == "infx" or name.endswith(".dist-info") for name in names)
    assert (installed / "infx/data/golden_al").is_dir()
    assert (installed / "infx/launch/slurm/templates/job.sh.j2").is_file()
