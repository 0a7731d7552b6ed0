"""The accuracy gate catches the faults that a broken kernel makes: the same questions, paired.

The long form, through a real server and lm-eval, stands in tests/proof.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from infx.analysis.accuracy import judge_score
from infx.analysis.paired import pair
from infx.engine.model import reference
from tests.engine.answering import Answers, answers
from tests.engine.broken_weights import MOST_USED, expert_times_four, nibbles_swapped

pytestmark = pytest.mark.slow

QUESTIONS = 12  # enough that a loss of most is no chance: 8 lost, none won, is p = 0.008


@pytest.fixture(scope="module")
def routed() -> list[torch.Tensor]:
    """The experts of every row, pass by pass and layer by layer, of the sound answers."""
    return []


@pytest.fixture(scope="module")
def sound(routed) -> Iterator[Answers]:
    route = reference.route

    def spy(*given):
        chosen, weight = route(*given)
        routed.append(chosen)
        return chosen, weight

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "route", spy)
        yield answers(QUESTIONS)


def without_local_block(scores, positions, block, topk):
    """The blocks chosen when the row's own comes last, so where there are others, not at all."""
    local = (positions // block)[:, None, :, None].expand(*scores.shape[:3], 1)
    order = scores.scatter(-1, local, -1e30).sort(dim=-1, descending=True, stable=True)
    return order.indices[..., :topk]


def fails_the_gate(sound: Answers, broken: Answers) -> None:
    for name in ("strict", "flexible"):
        verdict = pair(getattr(sound, name), getattr(broken, name))
        assert verdict.change == "worse", f"{name}: {verdict.sentence}"
    assert {verdict.answer for verdict in judge_score(broken.score)} == {"fail"}


def test_the_shipped_model_answers_and_its_draft_guesses(sound):
    assert sum(sound.strict.values()) >= QUESTIONS - 1
    assert sum(sound.flexible.values()) >= QUESTIONS - 1
    assert sound.acceptance_length > 2.2


def test_these_experts_are_the_most_used(sound, routed):
    for place, (layer, expert) in enumerate(MOST_USED.items()):
        uses = torch.cat(routed[place :: len(MOST_USED)]).flatten().bincount()
        assert uses[expert] > 0.95 * uses.max(), f"layer {layer}: {uses.tolist()}"


@pytest.mark.parametrize("layer", [2, 4])
def test_one_expert_with_scales_times_four_fails(sound, tmp_path, layer):
    broken = expert_times_four(tmp_path / "broken", layer, MOST_USED[layer])
    fails_the_gate(sound, answers(QUESTIONS, weights=broken))


def test_swapped_nibbles_fail(sound, tmp_path):
    fails_the_gate(sound, answers(QUESTIONS, weights=nibbles_swapped(tmp_path / "broken")))


def test_attention_without_the_local_block_fails(sound, monkeypatch):
    monkeypatch.setattr(reference, "choose_blocks", without_local_block)
    fails_the_gate(sound, answers(QUESTIONS))
