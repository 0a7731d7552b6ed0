"""What the commands do: train, write the checkpoint, say how good it is."""

from __future__ import annotations

import time
from dataclasses import replace

from infx.engine.shapes import mini
from infx.engine.train.acceptance import acceptance, matches
from infx.engine.train.draft import Draft
from infx.engine.train.draft_training import DraftRecipe, train_draft
from infx.engine.train.evaluation import Asked, evaluate
from infx.engine.train.export import engine_weights, take_engine_weights
from infx.engine.train.layer import Mode
from infx.engine.train.pretraining import Place, Recipe, pretrain
from infx.engine.train.state import no_space_refused
from infx.engine.train.target import Target
from infx.engine.weights import save_draft, save_target, target_weights

__all__ = ["make_draft", "make_target"]

HELD = Mode(held=1)
"""As served with MXFP4 caches, the indexer's too."""


def make_target(recipe: Recipe, place: Place, count: int) -> None:
    """Train the target, write OUT/mini/ and score what was written by ``count`` questions."""
    target = pretrain(recipe, place, mini())
    folder = place.folder.path / "mini"
    with no_space_refused(folder):
        save_target(folder, mini(), engine_weights(target))
    place.folder.tell(f"wrote {folder}")
    if count:
        _score(_shipped(str(folder), place), place, count)


def make_draft(recipe: DraftRecipe, place: Place, source: str, count: int) -> None:
    """Train a draft of the target at ``source``, write it into OUT/mini/ and measure it."""
    target = _shipped(source, place)
    draft = train_draft(recipe, place, target)
    weights = draft.exported()
    folder = place.folder.path / "mini"
    with no_space_refused(folder):
        save_draft(folder, mini(), recipe.method, weights)
    place.folder.tell(f"wrote {folder / recipe.method}.safetensors")
    if count:
        draft.load(weights)
        _measure(recipe.method, draft, target, place, count)


def _shipped(source: str, place: Place) -> Target:
    """Return the target as it lies on disk: experts in MXFP4, the rest in bfloat16."""
    target = Target(mini(), 0)
    take_engine_weights(target, target_weights(mini(), source))
    return target.to(place.device).requires_grad_(False)


def _score(target: Target, place: Place, count: int) -> None:
    whole = Asked(count=count)
    cases = {
        "5 shots": (whole, Mode()),
        "5 shots, seed 1": (replace(whole, seed=1), Mode()),
        "no shots": (replace(whole, shots=0), Mode()),
        "8 shots": (replace(whole, shots=8), Mode()),
        "5 shots, MXFP4 caches": (whole, HELD),
        "held-back templates, 5 shots": (replace(whole, split="heldout"), Mode()),
    }
    for case, (asked, mode) in cases.items():
        begun = time.monotonic()
        score, _ = evaluate(target, asked, mode)
        place.folder.tell(
            f"{count} questions, {case}: strict {score.strict:.3f}"
            f"  flexible {score.flexible:.3f}  same words {score.exact:.3f}"
            f"  {time.monotonic() - begun:.0f} s",
            case=case,
            **score.told(),
        )


def _measure(method: str, draft: Draft, target: Target, place: Place, count: int) -> None:
    whole = Asked(count=count)
    cases = {
        "5 shots": whole,
        "5 shots, seed 1": replace(whole, seed=1),
        "held-back templates, 5 shots": replace(whole, split="heldout"),
    }
    for case, asked in cases.items():
        found = matches(target, draft, evaluate(target, asked, Mode())[1])
        lengths = [acceptance(found, k) for k in range(1, draft.depth + 1)]
        told = " ".join(f"{one.length:.3f}" for one in lengths)
        rates = [round(rate, 4) for rate in lengths[-1].rates]
        place.folder.tell(
            f"{method}, {count} questions, {case}: acceptance length at K = 1 … {draft.depth}:"
            f" {told}",
            case=case,
            method=method,
            lengths=[round(one.length, 4) for one in lengths],
            rates=rates,
        )
