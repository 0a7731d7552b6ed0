"""Weights and tokenizers of the engines that read Hugging Face checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from infx.domain.point import Arm
from infx.frameworks.base import Refusal
from infx.frameworks.own_folders import ENGINES, model_folder

__all__ = ["checkpoint", "refuse_weights", "revision_words", "tokenizer"]

_HUB = "hf:"
_OWN = ("package:", "random:", "shipped")


def checkpoint(weights: str) -> str:
    """Return the word for ``weights`` on a command line: a hub id or a path.

    Raises EngineError (``weights-missing``) for a model that is not among the engines.
    """
    return str(model_folder(weights)) if weights.startswith(ENGINES) else weights.removeprefix(_HUB)


def revision_words(arm: Arm) -> list[str]:
    """Return the words that ask the hub for the revision of the recipe, where it has the weights;
    for the engines that spell them so."""
    told = arm.model.revision and arm.model.weights.startswith(_HUB)
    return ["--revision", arm.model.revision] if told else []


def tokenizer(arm: Arm) -> str:
    """Return what aiperf's --tokenizer takes: what the recipe names, else the checkpoint itself."""
    named = arm.model.tokenizer
    return checkpoint(arm.model.weights) if named == "engine" else checkpoint(named)


def refuse_weights(engine: str, arm: Arm) -> Iterator[Refusal]:
    """Yield why ``engine`` cannot read the weights: they are neither on the hub nor a path."""
    if arm.model.weights.startswith(_OWN):
        sentence = (
            f"{engine} reads hf:OWNER/NAME, engines:NAME or a path, not {arm.model.weights!r}"
        )
        yield Refusal("unsupported-weights", sentence)
