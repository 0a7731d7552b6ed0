"""The drafts' training loop: guesses at many places of a batch of conversations each step."""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from infx.engine.train.block import Block
from infx.engine.train.draft import Draft
from infx.engine.train.eagle import Eagle
from infx.engine.train.layer import Mode
from infx.engine.train.optimiser import Optimiser
from infx.engine.train.pretraining import STREAM, Conversations, Place
from infx.engine.train.schedule import falling
from infx.engine.train.state import SAVE_EVERY_S
from infx.engine.train.target import Target

__all__ = ["DRAFTS", "DraftRecipe", "train_draft"]

DRAFTS: dict[str, type[Eagle] | type[Block]] = {"eagle3": Eagle, "dspark": Block}

FIRST = 10_000_000
"""The first conversation: none of the target's own training."""

LATER = 0.9
"""Loss weight of a guess, relative to the one before it."""

TELL_EVERY_STEPS = 50
WARM_UP_STEPS, DECAY_FROM = 50, 0.4


@dataclass(frozen=True, slots=True)
class DraftRecipe:
    """What a draft's training follows from, beside the target. ``bases``: guesses' places in a
    conversation."""

    method: Literal["eagle3", "dspark"]
    steps: int = 800
    length: int = 2304
    batch: int = 16
    bases: int = 256
    seed: int = 1


def train_draft(recipe: DraftRecipe, place: Place, target: Target) -> Draft:
    """Return the draft of ``target`` after all steps, continued where the folder says so."""
    target.requires_grad_(False)
    done, tensors = place.folder.load(recipe.method, asdict(recipe))
    lessons = _lessons(recipe, place, done)
    make, tell = DRAFTS[recipe.method], place.folder.tell
    scale = _scale(target, recipe, place) if tensors is None else tensors["scale"]
    draft = make(target.shape, target.embed, scale, recipe.seed).to(place.device)
    optimiser = Optimiser(draft.named_parameters())
    if tensors is not None:
        draft.load_state_dict(tensors["draft"])
        optimiser.load(tensors["optimiser"])
    begun = saved = time.monotonic()
    for step, (tokens, answer) in zip(range(done, recipe.steps), lessons, strict=False):
        optimiser.rate.fill_(falling(step, recipe.steps, WARM_UP_STEPS, DECAY_FROM))
        told = _step(draft, target, tokens, answer, recipe, step, place)
        optimiser.step()
        if step % TELL_EVERY_STEPS == 0 or step + 1 == recipe.steps:
            tell(_sentence(recipe, step, time.monotonic() - begun, told))
        if time.monotonic() - saved > SAVE_EVERY_S:
            _save(recipe, place, step + 1, draft, optimiser)
            saved = time.monotonic()
    _save(recipe, place, recipe.steps, draft, optimiser)
    return draft


def _lessons(recipe: DraftRecipe, place: Place, first: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield tokens [b, t + 1] and which of their predictions belong to an answer [b, t]."""
    starts = range(FIRST + first * recipe.batch, FIRST + recipe.steps * recipe.batch, recipe.batch)
    loader = DataLoader(
        Conversations(STREAM + recipe.seed),
        batch_sampler=[[(i, recipe.length) for i in range(s, s + recipe.batch)] for s in starts],
        num_workers=place.workers,
        prefetch_factor=6 if place.workers else None,
    )
    for tokens, weights in loader:
        yield tokens.long(), weights == 1


def _scale(target: Target, recipe: DraftRecipe, place: Place) -> Tensor:
    """Return the root mean square of each tapped layer's states, spread over its hidden size."""
    tokens = torch.stack(
        [Conversations(STREAM + recipe.seed)[FIRST + i, recipe.length][0] for i in range(4)]
    )
    tapped = DRAFTS[recipe.method].layers_tapped(target.shape)
    taps = _states(target, tokens[:, :-1].long().to(place.device), tapped)
    layers: Tensor = taps.unflatten(-1, (-1, target.shape.hidden_size))
    sizes = layers.square().mean((0, 1, 3)).sqrt()
    return sizes.repeat_interleave(target.shape.hidden_size)


@torch.no_grad()
def _states(target: Target, tokens: Tensor, tapped: Sequence[int]) -> Tensor:
    fast = tokens.is_cuda
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=fast):
        taps: Tensor = target(tokens, Mode(fast=fast), tapped=tapped).taps
    return taps.float()


def _step(
    draft: Draft,
    target: Target,
    tokens: Tensor,
    answer: Tensor,
    recipe: DraftRecipe,
    step: int,
    place: Place,
) -> tuple[float, list[float]]:
    """Leave the gradients of one step; return the loss, and the share of right guesses by depth."""
    device, depth = place.device, draft.depth
    rows = _rows(answer, depth, recipe, step).to(device)
    tokens, answer = tokens.to(device), answer.to(device)
    known = tokens[:, :-1].contiguous()
    taps = _states(target, known, draft.tapped)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        guesses = draft(known, taps, rows)
    goal = torch.stack([tokens.gather(1, rows + 1 + d) for d in range(depth)])
    # A guess counts where all tokens up to it belong to the answer.
    inside = torch.stack([answer.gather(1, rows + d) for d in range(depth)]).cumprod(0)
    lost = cross_entropy(guesses.float().flatten(0, -2), goal.flatten(), reduction="none")
    later = LATER ** torch.arange(depth, device=device)
    weight = inside * later[:, None, None]
    loss = (lost.view_as(goal) * weight).sum() / weight.sum()
    loss.backward()
    if step % TELL_EVERY_STEPS and step + 1 != recipe.steps:
        return 0.0, []
    right = ((guesses.argmax(-1) == goal) * inside).sum((1, 2)) / inside.sum((1, 2)).clamp(min=1)
    return loss.item(), right.tolist()


def _rows(answer: Tensor, depth: int, recipe: DraftRecipe, step: int) -> Tensor:
    """Return distinct positions [b, bases], in answers as far as there are enough."""
    generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + step)
    likely = answer[:, : -depth - 2].float() + 1e-9
    return torch.multinomial(likely, recipe.bases, generator=generator)


def _save(recipe: DraftRecipe, place: Place, done: int, draft: Draft, optimiser: Optimiser) -> None:
    tensors = {
        "draft": draft.state_dict(),
        "scale": draft.scale,
        "optimiser": optimiser.state(),
    }
    place.folder.save(recipe.method, asdict(recipe), done, tensors)


def _sentence(
    recipe: DraftRecipe, step: int, seconds: float, told: tuple[float, list[float]]
) -> str:
    rights = " ".join(f"{share:.3f}" for share in told[1])
    return (
        f"{recipe.method} step {step:4}/{recipe.steps} {seconds:5.0f} s  loss {told[0]:.4f}"
        f"  right guesses by depth {rights}"
    )
