"""Copies of the shipped checkpoint with one thing wrong, as a broken kernel would have it."""

from __future__ import annotations

import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from infx.engine.weights import checkpoint_folder

MOST_USED = {1: 4, 2: 7, 3: 1, 4: 1}
"""{layer: the expert that most rows of gsm_mini's questions are routed to}. How much an expert
matters differs: one that is dispensable can pass a bar that this one's fault fails."""

EXPERT = "block_sparse_moe.experts.{expert}."


def expert_times_four(folder: Path, layer: int, expert: int) -> str:
    """All scales of one expert two powers of two too large."""

    def change(name: str, tensor: Tensor) -> Tensor:
        own = f"layers.{layer}.{EXPERT.format(expert=expert)}" in name
        return tensor + 2 if own and name.endswith("weight_scale") else tensor

    return _copy(folder, change)


def nibbles_swapped(folder: Path) -> str:
    """Every byte of the experts' weights read high nibble first."""

    def change(name: str, tensor: Tensor) -> Tensor:
        packed = ".experts." in name and name.endswith(".weight")
        return (tensor >> 4) | (tensor << 4) if packed else tensor

    return _copy(folder, change)


def _copy(folder: Path, change) -> str:
    shutil.copytree(checkpoint_folder("mini"), folder)
    file = folder / "model.safetensors"
    before = load_file(file)
    after = {name: change(name, tensor) for name, tensor in before.items()}
    changed = [name for name in before if not before[name].equal(after[name])]
    assert changed, "the fault changed nothing"
    save_file(after, file)
    return str(folder)
