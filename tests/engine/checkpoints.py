"""A sound checkpoint of a tiny shape, and ways to change it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from infx.domain.errors import UsageError
from infx.engine.shapes import mini
from infx.engine.weights import (
    checkpoint,
    draft_weights,
    save_draft,
    target_weights,
)

TINY = mini(
    hidden_size=64, num_layers=3, heads=4, head_dim=16, rotary_dim=8, block_size=4, topk_blocks=2,
    experts=4, experts_per_token=2, expert_size=32, shared_size=24, dense_size=40, vocab_size=130,
    max_positions=64, aux_layers=(0, 1, 2), block_layers=(0, 2),
)  # fmt: skip
WRAPPED = "language_model."
AT = f"{WRAPPED}model.layers."
EXPERT = f"{AT}2.block_sparse_moe.experts.3.w2.weight"


def sound_checkpoint(folder: Path) -> Path:
    """A checkpoint with MXFP4 experts, FP8 projections and both drafts."""
    weights = target_weights(TINY, "random:0")
    checkpoint.save_target(folder, TINY, weights, experts="mxfp4", projections="fp8")
    for method in ("eagle3", "dspark"):
        save_draft(folder, TINY, method, draft_weights(TINY, method, "random:0"))
    return folder


def refusal_of(call) -> UsageError:
    with pytest.raises(UsageError) as refused:
        call()
    return refused.value


def edited(folder: Path, change, name: str = "model.safetensors") -> None:
    tensors = load_file(folder / name)
    change(tensors)
    save_file(tensors, folder / name)


def sharded(folder: Path) -> dict:
    """Split the checkpoint into two shards and an index, which is returned."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, index = sorted(tensors), {}
    for number, part in enumerate((names[::2], names[1::2])):
        shard = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / shard)
        index |= dict.fromkeys(part, shard)
    write_index(folder, index)
    return index


def write_index(folder: Path, index: object) -> None:
    text = json.dumps({"metadata": {}, "weight_map": index})
    (folder / "model.safetensors.index.json").write_text(text)
