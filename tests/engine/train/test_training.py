"""The training form agrees with the engine's model, learns, and continues where it stopped."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import torch

from infx.domain.errors import InfraError, UsageError
from infx.engine.model.reference import ReferenceModel
from infx.engine.quant import mxfp4_round
from infx.engine.train.__main__ import main
from infx.engine.train.acceptance import acceptance
from infx.engine.train.draft_training import DraftRecipe, train_draft
from infx.engine.train.evaluation import judged
from infx.engine.train.export import engine_weights, take_engine_weights
from infx.engine.train.layer import Mode
from infx.engine.train.optimiser import Optimiser
from infx.engine.train.pretraining import Place, Recipe, pretrain
from infx.engine.train.rounding import mxfp4
from infx.engine.train.schedule import Schedule
from infx.engine.train.state import Folder, no_space_refused
from infx.engine.train.step import Lesson, Step
from infx.engine.train.target import Target
from infx.engine.weights import target_weights
from tests.engine.train.making_models import stirred, tiny

CPU = torch.device("cpu")


def place(path: Path, resume: bool = False) -> Place:
    return Place(CPU, Folder(path, resume))


@pytest.mark.parametrize("experts", ["fp32", "mxfp4"])
def test_what_is_exported_computes_what_was_trained(tmp_path, experts: str) -> None:
    shape, target = tiny(), stirred(tiny())
    save_whole(tmp_path, target, experts)
    mode = Mode(rounded=experts == "mxfp4")
    ids = torch.randint(0, 261, (1, 160), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        mine = target.logits(target(ids, mode).stream)[0]
    served = ReferenceModel(shape, target_weights(shape, str(tmp_path))).logits(ids[0])
    assert (mine - served).abs().max() < 1e-4 * served.abs().max()


def save_whole(folder: Path, target: Target, experts: str) -> None:
    from infx.engine.weights.checkpoint import save_target as save

    save(folder, target.shape, engine_weights(target), experts, "fp32", "fp32")


def test_weights_survive_the_way_out_and_back() -> None:
    target, other = stirred(tiny()), Target(tiny(), 9)
    take_engine_weights(other, engine_weights(target))
    assert all(
        torch.equal(tensor, other.state_dict()[name])
        for name, tensor in target.state_dict().items()
    )


def test_rounding_is_the_engines_bit_for_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 96, generator=generator) * 10 ** torch.linspace(-30, 30, 500)[:, None]
    x[0], x[1, :32] = 0, torch.arange(32) / 4
    assert torch.equal(mxfp4(x), mxfp4_round(x))


def test_a_few_steps_lower_the_loss() -> None:
    target, schedule = Target(tiny(), 1), Schedule(60, 384, 1)
    step = Step(target, Optimiser(target.named_parameters()), CPU)
    tokens = torch.randint(97, 105, (1, 1), generator=torch.Generator().manual_seed(0))
    tokens = (tokens + torch.arange(129)[None] % 7).to(torch.int16)
    lesson = Lesson(tokens, torch.ones(1, 128), torch.arange(40, 100, 10))
    told = [step(lesson, schedule.phase(n), schedule.rate(n)).answers.item() for n in range(15)]
    assert told[-1] < 0.7 * told[0]


def test_balance_favours_the_idle_expert() -> None:
    layer = Target(tiny(), 1).numbered[-1][1]
    layer.balance(torch.tensor([10, 0, 0, 2]), torch.tensor(0.1))
    assert layer.router_bias.argmin() == 0
    assert layer.router_bias.sum().abs() < 1e-6


def test_to_resume_where_nothing_is_saved_begins_and_says_so(tmp_path, capsys) -> None:
    assert Folder(tmp_path, resume=True).load("target", {}) == (0, None)
    assert f"nothing is saved in {tmp_path}" in capsys.readouterr().out


def test_drafts_without_a_target_are_refused_with_the_next_step(tmp_path, capsys) -> None:
    assert main(["drafts", "--out", str(tmp_path), "--device", "cpu"]) == 2
    assert f"bad-option --out {tmp_path}: holds no target" in capsys.readouterr().err


@pytest.mark.slow
def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path, monkeypatch, capsys) -> None:
    recipe, shape = Recipe(steps=10, length=384, batch=1), tiny()
    whole = pretrain(recipe, place(tmp_path / "whole"), shape).state_dict()
    monkeypatch.setattr("infx.engine.train.pretraining.SAVE_EVERY_S", -1.0)
    monkeypatch.setattr("infx.engine.train.pretraining._save", _save_and_stop_at(6))
    with pytest.raises(KeyboardInterrupt):
        pretrain(recipe, place(tmp_path / "cut"), shape)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="--resume"):
        pretrain(recipe, place(tmp_path / "cut"), shape)
    with pytest.raises(UsageError, match="another --out"):
        pretrain(Recipe(steps=11, length=384, batch=1), place(tmp_path / "cut", True), shape)
    capsys.readouterr()
    resumed = pretrain(recipe, place(tmp_path / "cut", True), shape).state_dict()
    assert "nothing is saved" not in capsys.readouterr().out
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def _save_and_stop_at(stop: int):
    from infx.engine.train import pretraining

    save = pretraining._save

    def saving(folder, recipe, done, target, optimiser) -> None:
        save(folder, recipe, done, target, optimiser)
        if done == stop:
            raise KeyboardInterrupt

    return saving


@pytest.mark.slow
@pytest.mark.parametrize(("method", "taps"), [("eagle3", 3), ("dspark", 2)])
def test_drafts_train_on_a_target(tmp_path, method: str, taps: int) -> None:
    recipe = DraftRecipe(method, steps=10, length=384, batch=1, bases=16)  # type: ignore[arg-type]
    draft = train_draft(recipe, place(tmp_path), stirred(tiny()))
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    first, last = (float(line.split("loss ")[1].split()[0]) for line in lines)
    assert last < first
    assert draft.exported()["fc"].shape == (32 * taps, 32)


def test_a_schedule_counts_the_conversations_it_uses() -> None:
    schedule = Schedule(40, 384, 2)
    used = 0
    for step in range(40):
        assert schedule.first_conversation(step) == used
        used += schedule.phase(step).batch
    assert [schedule.phase(step).length for step in (0, 19, 20)] == [128, 128, 384]


def test_a_full_disk_is_said(tmp_path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(InfraError, match="--resume") as raised, no_space_refused(tmp_path):
        raise full
    assert raised.value.code == "disk-full"


def test_acceptance_walks_a_text() -> None:
    right = torch.tensor([[1, 1], [0, 1], [1, 0], [1, 1], [1, 0], [0, 0]]).bool()
    # From 0 two are accepted (3 tokens), from 3 two more reach the end.
    found = acceptance([right], 2)
    assert (found.length, found.rates) == (5 / 2, (1.0, 1.0))
    assert acceptance([right], 1).length == 5 / 3


def test_answers_are_judged_as_gsm8k_does() -> None:
    assert judged("It is 7.\n#### 1,234", 1234) == (True, True)
    assert judged("It is $12.", 12) == (False, True)
    assert judged("#### 5 and 6", 5) == (True, False)
    assert judged("", 1) == (False, False)
