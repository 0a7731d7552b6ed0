"""The target's training loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from infx.engine.shapes import ModelConfig
from infx.engine.train.conversations import conversation
from infx.engine.train.optimiser import Optimiser
from infx.engine.train.schedule import Schedule
from infx.engine.train.state import SAVE_EVERY_S, Folder
from infx.engine.train.step import Lesson, Step, Told
from infx.engine.train.target import Target

__all__ = ["Conversations", "Place", "Recipe", "pretrain"]

STREAM = 4_000_000
"""Seed of the questions of seed 0's run; evaluations have small seeds."""

ROWS = 128
TELL_EVERY_STEPS = 100


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a run's outcome follows from, beside the shape."""

    steps: int = 7500
    length: int = 3456
    batch: int = 21
    seed: int = 1

    @property
    def schedule(self) -> Schedule:
        """The run, step by step."""
        return Schedule(self.steps, self.length, self.batch)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happens: device, processes that write conversations (0: this one), files."""

    device: torch.device
    folder: Folder
    workers: int = 0


class Conversations(Dataset[tuple[Tensor, Tensor]]):
    """Items are (index, length); each is tokens [length + 1], int16, and weights [length]."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def __getitem__(self, key: tuple[int, int]) -> tuple[Tensor, Tensor]:
        ids, weights = conversation(*key, self._stream)
        return torch.tensor(ids, dtype=torch.int16), torch.tensor(weights)


def pretrain(recipe: Recipe, place: Place, shape: ModelConfig) -> Target:
    """Return the target after all steps of ``recipe``, continued where its folder says so."""
    target = Target(shape, recipe.seed).to(place.device)
    optimiser = Optimiser(target.named_parameters())
    done, tensors = place.folder.load("target", asdict(recipe))
    if tensors is not None:
        target.load_state_dict(tensors["target"])
        optimiser.load(tensors["optimiser"])
    step = Step(target, optimiser, place.device)
    begun = saved = time.monotonic()
    lessons = _lessons(recipe, place.workers, done)
    for number, lesson in zip(range(done, recipe.steps), lessons, strict=False):
        phase, rate = recipe.schedule.phase(number), recipe.schedule.rate(number)
        told = step(lesson, phase, rate)
        if number % TELL_EVERY_STEPS == 0 or number + 1 == recipe.steps:
            _tell(place.folder, recipe, number, told, time.monotonic() - begun)
        if time.monotonic() - saved > SAVE_EVERY_S:
            _save(place.folder, recipe, number + 1, target, optimiser)
            saved = time.monotonic()
    _save(place.folder, recipe, recipe.steps, target, optimiser)
    return target


def _lessons(recipe: Recipe, workers: int, first: int) -> Iterator[Lesson]:
    """Yield the lessons from step ``first`` on."""
    loader = DataLoader(
        Conversations(STREAM + recipe.seed),
        batch_sampler=_keys(recipe.schedule, first),
        num_workers=workers,
        prefetch_factor=6 if workers else None,
    )
    for number, (tokens, weights) in enumerate(loader, first):
        generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + number)
        rows = torch.randperm(tokens.shape[1] - 1, generator=generator)[:ROWS].sort().values
        yield Lesson(tokens, weights, rows)


def _keys(schedule: Schedule, first: int) -> Any:
    """Return the batches of (index, length), made as they are asked for."""
    at = schedule.first_conversation(first)
    keys = []
    for number in range(first, schedule.steps):
        phase = schedule.phase(number)
        keys.append([(at + i, phase.length) for i in range(phase.batch)])
        at += phase.batch
    return keys


def _save(folder: Folder, recipe: Recipe, done: int, target: Target, optimiser: Optimiser) -> None:
    tensors = {"target": target.state_dict(), "optimiser": optimiser.state()}
    folder.save("target", asdict(recipe), done, tensors)


def _tell(folder: Folder, recipe: Recipe, number: int, told: Told, seconds: float) -> None:
    phase = recipe.schedule.phase(number)
    fields = {
        "step": number,
        "seconds": round(seconds, 1),
        "answers": round(told.answers.item(), 4),
        "index": round(told.index.item(), 3),
        "covered": [round(share, 3) for share in told.covered.tolist()],
        "busiest": round(told.busiest.item(), 2),
        **asdict(phase),
    }
    kind = f"{phase.length} tokens, {'sparse' if phase.sparse else 'full'} attention"
    folder.tell(
        f"step {number:5}/{recipe.steps} {seconds:6.0f} s  loss of answers {fields['answers']:.4f}"
        f"  of indexers {fields['index']:.3f}  busiest expert {fields['busiest']:.2f}  {kind}"
        f"{', MXFP4' if phase.rounded else ''}",
        **fields,
    )
