"""Weights by name: random from a seed, or read from a checkpoint's folder.

``source`` is ``random:SEED``, ``shipped`` (the package's own checkpoint of that model) or a folder.
Torch is imported only where tensors are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from infx.engine.weights.source import (
    checkpoint_folder,
    folder_of,
    identity,
    seed_of,
    shape_of_source,
)
from infx.engine.weights.tensors import draft_sizes, target_sizes, total_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.shapes import ModelConfig

__all__ = [
    "checkpoint_folder",
    "draft_sizes",
    "draft_weights",
    "identity",
    "save_draft",
    "save_target",
    "seed_of",
    "shape_of_source",
    "target_sizes",
    "target_weights",
    "total_bytes",
]


def target_weights(shape: ModelConfig, source: str, experts: str = "fp32") -> dict[str, Tensor]:
    """Return the target's float32 tensors by infx's names; matrices are [in, out].

    ``experts`` "mxfp4" rounds the experts' weights to what MXFP4 holds, along their inputs. Raises
    RefusalError: ``unsupported-weights`` for a source that is none, ``bad-checkpoint`` with
    everything that is wrong with a folder.
    """
    weights = _target(shape, source)
    if experts == "mxfp4":
        from infx.engine.weights.rounding import round_experts

        round_experts(weights, shape)
    return weights


def _target(shape: ModelConfig, source: str) -> dict[str, Tensor]:
    folder = folder_of(source, shape.name)
    if folder is None:
        from infx.engine.weights.random import random_target

        return random_target(shape, seed_of(source) or 0)
    from infx.engine.weights.checkpoint import read_target

    return read_target(folder, shape)


def draft_weights(shape: ModelConfig, method: str, source: str) -> dict[str, Tensor]:
    """Return the float32 tensors of the ``eagle3`` or ``dspark`` draft. Raises as the target's."""
    folder = folder_of(source, shape.name)
    if folder is None:
        from infx.engine.weights.random import random_draft

        return random_draft(shape, method, seed_of(source) or 0)
    from infx.engine.weights.checkpoint import read_draft

    return read_draft(folder, shape, method)


def save_target(
    folder: Path, shape: ModelConfig, weights: Mapping[str, Tensor], experts: str = "mxfp4"
) -> None:
    """Write a checkpoint that `target_weights` reads; see `checkpoint.save_target`."""
    from infx.engine.weights.checkpoint import save_target as save

    save(folder, shape, weights, experts)


def save_draft(
    folder: Path, shape: ModelConfig, method: str, weights: Mapping[str, Tensor]
) -> None:
    """Write a draft beside its target; see `checkpoint.save_draft`."""
    from infx.engine.weights.checkpoint import save_draft as save

    save(folder, shape, method, weights)
