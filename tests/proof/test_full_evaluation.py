"""The shipped checkpoint's bars, through a real server and the real lm-eval: all 500 questions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infx.frameworks import get
from infx.job.accuracy import evaluate
from infx.job.lm_eval_run import SAMPLES
from tests.engine.running_engine import running
from tests.job.jobs import arm, point

pytestmark = pytest.mark.proof

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = 500
BAR = 0.9


@pytest.mark.parametrize(
    ("method", "k", "shortest"), [("eagle3", 3, 2.2), ("dspark", 7, 3.5)], ids=["eagle3", "dspark"]
)
def test_accuracy_and_real_acceptance(method: str, k: int, shortest: float, tmp_path: Path) -> None:
    task = point(arm("infx"), conc=8, mode="evaluation", limit=QUESTIONS)
    draft = ("--speculative-method", method, "--num-speculative-tokens", str(k))
    with running("--weights", "shipped", *draft) as server:
        score = evaluate(task, server.url, tmp_path)
        counted = get("infx").counters("", server.get("/metrics"))
    print(method, {name: one.score for name, one in score.filters.items()}, counted)
    assert (score.questions, score.empty, score.cut) == (QUESTIONS, 0, 0)
    assert all(score.filters[name].score >= BAR for name in ("strict-match", "flexible-extract"))
    assert counted.acceptance_length is not None
    assert counted.acceptance_length >= shortest
    rows = [json.loads(line) for line in (tmp_path / SAMPLES).read_text().splitlines()]
    assert len({row["doc"]["question"] for row in rows}) == QUESTIONS


def test_eight_shots_by_the_command_line(tmp_path: Path) -> None:
    argv = ["eval", "configs/quickstart.yaml", "--entry", "minimaxm3*", "--shots", "8"]
    command = [sys.executable, "-m", "infx", *argv, "--results", str(tmp_path), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (path,) = tmp_path.rglob("point.json")
    score = json.loads(path.read_text())["score"]
    print(score)
    assert (score["questions"], score["shots"], score["limit"]) == (QUESTIONS, 8, None)
    assert set(score["filters"]) == {"strict-match", "flexible-extract", "robust"}
    assert all(one["score"] >= BAR for one in score["filters"].values())
