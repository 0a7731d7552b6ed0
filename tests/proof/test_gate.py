"""The accuracy gate on broken engines: real server, real lm-eval, the same questions, paired."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from infx.analysis.accuracy import judge_score
from infx.analysis.paired import pair
from infx.domain.record import Score
from infx.job.accuracy import evaluate
from infx.job.lm_eval_run import SAMPLES
from tests.engine.broken_weights import MOST_USED, expert_times_four, nibbles_swapped
from tests.engine.running_engine import running
from tests.job.jobs import arm, point

pytestmark = pytest.mark.proof

QUESTIONS = 100
BARS = {"strict-match": 0.9, "flexible-extract": 0.9}
DRAFT = ("--speculative-method", "eagle3", "--num-speculative-tokens", "3")
WITHOUT_LOCAL_BLOCK = """
import sys
from infx.engine.model import reference
from tests.engine.test_sensitivity import without_local_block
reference.choose_blocks = without_local_block
from infx.engine.__main__ import main
sys.exit(main([*sys.argv[1:], "--layers", "reference"]))
"""


def asked(folder: Path, weights: str, *program: str) -> tuple[Score, dict[str, dict[str, bool]]]:
    """The score of an engine with these weights, and {filter: {question: right}}."""
    task = point(arm("infx"), conc=8, mode="evaluation", limit=QUESTIONS, bars=BARS)
    with running("--weights", weights, *DRAFT, program=program) as server:
        score = evaluate(task, server.url, folder / "lm-eval")
    right: dict[str, dict[str, bool]] = {}
    for line in (folder / "lm-eval" / SAMPLES).read_text().splitlines():
        row = json.loads(line)
        right.setdefault(row["filter"], {})[row["doc"]["question"]] = row["exact_match"] == 1
    return score, right


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    score, right = asked(tmp_path_factory.mktemp("sound"), "shipped")
    assert {verdict.answer for verdict in judge_score(score) if verdict.bar} == {"pass"}
    return right


def fails(sound, folder: Path, weights: str, *program: str) -> None:
    score, right = asked(folder, weights, *program)
    assert right.keys() == sound.keys()
    for name in BARS:
        verdict = pair(sound[name], right[name])
        print(name, verdict.sentence)
        assert verdict.change == "worse"
    assert {verdict.answer for verdict in judge_score(score) if verdict.bar} == {"fail"}


@pytest.mark.parametrize(("layer", "expert"), MOST_USED.items())
def test_one_expert_with_scales_times_four(sound, tmp_path: Path, layer: int, expert: int) -> None:
    fails(sound, tmp_path, expert_times_four(tmp_path / "broken", layer, expert))


def test_swapped_nibbles(sound, tmp_path: Path) -> None:
    fails(sound, tmp_path, nibbles_swapped(tmp_path / "broken"))


def test_no_local_block(sound, tmp_path: Path) -> None:
    fails(sound, tmp_path, "shipped", sys.executable, "-c", WITHOUT_LOCAL_BLOCK)
