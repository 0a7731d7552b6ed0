"""Where weights come from: ``random:SEED``, ``shipped`` or a folder. Imports no torch."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import replace
from pathlib import Path

from infx.engine.refusal import RefusalError, refuse_faults
from infx.engine.shapes import MODELS, NULL, ModelConfig
from infx.engine.weights.public_config import differences, read_shape

__all__ = [
    "AUTO",
    "SHIPPED",
    "checkpoint_folder",
    "folder_of",
    "identity",
    "seed_of",
    "shape_of_source",
]

AUTO, SHIPPED = "auto", "shipped"
CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"
RANDOM = "random:"
# Longer seeds are typing errors, and Python reads very long numbers slowly.
SEED_DIGITS = 18
IDENTITY_DIGITS = 16


def checkpoint_folder(model: str) -> Path:
    """Return where the package keeps the checkpoint of ``model``, there or not."""
    return CHECKPOINTS / model


def seed_of(source: str) -> int | None:
    """Return the seed of ``random:SEED``, None for weights from files. Raises RefusalError."""
    if not source.startswith(RANDOM):
        return None
    seed = source.removeprefix(RANDOM)
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= SEED_DIGITS):
        raise RefusalError(
            "unsupported-weights",
            f"--weights {source[:60]}: expected random:SEED, a number of at most {SEED_DIGITS}"
            " digits",
        )
    return int(seed)


def folder_of(source: str, model: str) -> Path | None:
    """Return the checkpoint's folder, None for random weights. Raises RefusalError.

    ``shipped`` is the folder of that model inside the package.
    """
    if seed_of(source) is not None:
        return None
    folder = checkpoint_folder(model) if source == SHIPPED else Path(source)
    if folder.is_dir():
        return folder
    shipped = ", ".join(sorted(path.name for path in CHECKPOINTS.glob("*/")))
    raise RefusalError(
        "unsupported-weights",
        f"--weights {source[:200]}: expected random:SEED, {SHIPPED} (for --model"
        f" {shipped or 'none yet'}) or the folder of a checkpoint; found no folder {folder}",
    )


@functools.lru_cache(maxsize=32)
def shape_of_source(model: str, source: str, router_dtype: str = "fp32") -> ModelConfig:
    """Return the shape that ``model`` with weights from ``source`` has.

    A checkpoint's config.json must describe the preset that ``model`` names; with the model
    ``auto`` it alone decides. A file is read once. Raises RefusalError that lists every field that
    differs.
    """
    return replace(_shape(model, source), router_dtype=router_dtype)


def _shape(model: str, source: str) -> ModelConfig:
    if model not in (AUTO, *MODELS):
        known = ", ".join((*MODELS, AUTO, NULL))
        raise RefusalError("unsupported-model", f"--model {model[:60]}: expected one of {known}")
    if model == AUTO and source == SHIPPED:
        raise RefusalError(
            "unsupported-weights",
            f"--weights {SHIPPED} with --model {AUTO}: name the model, --model mini",
        )
    folder = folder_of(source, model)
    if folder is None:
        if model == AUTO:
            raise RefusalError(
                "unsupported-model",
                f"--model {AUTO} with --weights {source}: expected the folder of a checkpoint,"
                " or the model by name",
            )
        return MODELS[model]()
    if model == AUTO:
        return read_shape(folder)
    shape, preset = read_shape(folder, model), MODELS[model]()
    faults = [f"{name} {a}: expected {b}" for name, a, b in differences(shape, preset)]
    refuse_faults(
        "bad-checkpoint",
        f"{folder / 'config.json'} is not of --model {model}",
        faults,
        hint=f"--model {AUTO} takes the shape from the folder",
    )
    return preset


def identity(source: str, model: str = "mini") -> str:
    """Return the first hex digits of the sha256 of a checkpoint's files, "" for random weights."""
    folder = folder_of(source, model)
    if folder is None:
        return ""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.json"), *folder.glob("*.safetensors")]):
        digest.update(path.name.encode() + b"\0" + path.stat().st_size.to_bytes(8, "big"))
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:IDENTITY_DIGITS]
