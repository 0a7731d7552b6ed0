"""The checkpoint that the package ships."""

from __future__ import annotations

import pytest
import torch

from infx.engine.shapes import mini
from infx.engine.train.conversations import END, prompt
from infx.engine.train.draft_training import DRAFTS
from infx.engine.train.export import take_engine_weights
from infx.engine.train.layer import Mode
from infx.engine.train.target import Target
from infx.engine.weights import checkpoint_folder, draft_weights, shape_of_source, target_weights
from infx.workloads.gsm_mini import questions
from tests.quiet_machine import quiet_s

FOLDER = checkpoint_folder("mini")
MOST_BYTES = 12_000_000
MOST_SECONDS = 1.0


def test_it_is_small_and_whole() -> None:
    files = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    drafts = {"eagle3.safetensors", "dspark.safetensors"}
    assert {"config.json", "model.safetensors", "README.md"} | drafts == set(files)
    assert sum(files.values()) < MOST_BYTES


def test_its_config_is_minis_shape() -> None:
    assert shape_of_source("mini", "shipped") == mini()


def test_it_loads_in_under_a_second() -> None:
    assert quiet_s(lambda: target_weights(mini(), "shipped"), rounds=3) < MOST_SECONDS


@pytest.mark.parametrize("method", list(DRAFTS))
def test_a_draft_has_what_its_training_form_has(method: str) -> None:
    draft = DRAFTS[method](mini(), torch.zeros(320, 192), torch.ones(576), 0)
    weights = draft_weights(mini(), method, "shipped")
    assert {n: p.shape for n, p in draft.named_parameters()} == {
        name: tensor.shape for name, tensor in weights.items()
    }


@pytest.mark.slow
def test_it_knows_its_answers() -> None:
    """Next tokens of whole reference answers, given the text up to each; 5 of 6 without a slip."""
    target = Target(mini(), 0)
    take_engine_weights(target, target_weights(mini(), "shipped"))
    good = sum(_knows(target, question) for question in questions("test", 6, 5))
    assert good >= 5


@torch.no_grad()
def _knows(target: Target, question) -> bool:
    asked, answer = prompt([], question), [*question.answer.encode(), END]
    ids = torch.tensor([[*asked, *answer, *[0] * (-(len(asked) + len(answer)) % 16)]])
    guesses = target.logits(target(ids, Mode()).stream)[0].argmax(-1).tolist()
    return guesses[len(asked) - 1 : len(asked) + len(answer) - 1] == answer
