"""The whole of gsm_mini, 8-shot, through the real lm-eval on infx's engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.proof


def test_all_questions_of_gsm_mini_eight_shots(tmp_path: Path) -> None:
    argv = ["eval", "configs/quickstart.yaml", "--entry", "minimaxm3*", "--shots", "8"]
    command = [sys.executable, "-m", "infx", *argv, "--results", str(tmp_path), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = tmp_path.rglob("point.json")
    score = json.loads(path.read_text())["score"]
    print(score)
    assert (score["questions"], score["shots"], score["limit"]) == (500, 8, None)
    assert set(score["filters"]) == {"strict-match", "flexible-extract", "robust"}
    assert all(one["score"] < 0.1 for one in score["filters"].values()), (
        "random weights know little"
    )
