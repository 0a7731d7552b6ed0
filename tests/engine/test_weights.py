"""Weights: random by seed, the weight map, checkpoints written and read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from infx.engine.quant import mxfp4_round
from infx.engine.shapes import mini, mini_3_1
from infx.engine.weights import (
    checkpoint,
    draft_sizes,
    draft_weights,
    identity,
    save_draft,
    save_target,
    shape_of_source,
    target_sizes,
    target_weights,
)
from infx.engine.weights.names import join, plain_name, split, weight_map
from tests.engine.checkpoints import (
    AT,
    EXPERT,
    TINY,
    edited,
    sharded,
    sound_checkpoint,
)
from tests.quiet_machine import quiet_s

torch.set_num_threads(1)


@pytest.fixture
def folder(tmp_path) -> Path:
    return sound_checkpoint(tmp_path)


# Random weights


def test_random_weights_are_what_they_were():
    """Runs that are compared over time must have the same weights: these are known values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(target_weights(mini(), "random:3").items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    for name, tensor in sorted(draft_weights(mini(), "eagle3", "random:3").items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    assert digest.hexdigest()[:16] == "611a85bdd806c70c"


@pytest.mark.parametrize("shape", [mini(), mini_3_1(), TINY], ids=lambda shape: shape.name)
def test_random_weights_have_the_sizes_of_the_shape(shape):
    weights = target_weights(shape, "random:1")
    assert {name: tuple(t.shape) for name, t in weights.items()} == target_sizes(shape)
    for method in ("eagle3", "dspark"):
        draft = draft_weights(shape, method, "random:1")
        assert {name: tuple(t.shape) for name, t in draft.items()} == draft_sizes(shape, method)


def test_drafts_of_random_weights_write_readable_text():
    draft = draft_weights(mini(), "dspark", "random:1")
    for name in ("head", "markov_out"):
        assert not draft[name][:, :32].any()
        assert not draft[name][:, 127:].any()
        assert draft[name][:, 32:127].any()


# The weight map


@pytest.mark.parametrize("spelling", ["checkpoint", "modules"])
@pytest.mark.parametrize("shape", [mini(), mini_3_1(), TINY], ids=lambda shape: shape.name)
def test_ours_to_public_and_back_is_the_same(shape, spelling):
    weights = target_weights(shape, "random:0")
    entries = weight_map(shape, spelling)
    assert entries.keys() == weights.keys()
    public = {}
    for name, entry in entries.items():
        for part, tensor in zip(entry.parts, split(entry, weights[name]), strict=True):
            assert tuple(tensor.shape) == part.size
            assert part.name not in public
            public[part.name] = tensor
    for name, entry in entries.items():
        again = join(entry, [public[part.name] for part in entry.parts])
        assert torch.equal(again, weights[name])


def test_public_names_are_those_of_the_checkpoint():
    names = {part.name for entry in weight_map(TINY, "checkpoint").values() for part in entry.parts}
    for name in (
        "model.embed_tokens.weight",
        "model.layers.0.self_attn.q_proj.weight",
        "model.layers.1.self_attn.index_k_norm.weight",
        "model.layers.0.mlp.gate_proj.weight",
        "model.layers.1.block_sparse_moe.gate.weight",
        "model.layers.1.block_sparse_moe.e_score_correction_bias",
        "model.layers.1.block_sparse_moe.experts.3.w1.weight",
        "model.layers.1.block_sparse_moe.shared_experts.down_proj.weight",
        "model.norm.weight",
        "lm_head.weight",
    ):
        assert name in names
    assert "model.layers.0.self_attn.index_q_proj.weight" not in names


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("language_model.model.norm.weight", "model.norm.weight"),
        ("model.language_model.norm.weight", "model.norm.weight"),
        ("language_model.lm_head.weight", "lm_head.weight"),
        ("lm_head.weight", "lm_head.weight"),
        ("vision_tower.vision_model.pre_layrnorm.weight", None),
        ("model.multi_modal_projector.linear_1.weight", None),
        ("patch_merge_mlp.linear_1.weight", None),
        ("language_model.model.mtp.0.norm.weight", None),
        ("model.visions", "model.visions"),
    ],
)
def test_wrapped_names_and_other_parts(name, plain):
    assert plain_name(name) == plain


def test_heads_with_norms_of_their_own_cannot_be_saved(tmp_path):
    weights = target_weights(TINY, "random:0")
    weights["layers.1.head_norm"][1] += 1
    with pytest.raises(ValueError, match=r"layers\.1\.self_attn\.q_norm"):
        save_target(tmp_path, TINY, weights)


# Checkpoints


def test_a_float32_checkpoint_holds_every_bit(tmp_path):
    weights = target_weights(TINY, "random:0")
    checkpoint.save_target(tmp_path, TINY, weights, "fp32", "fp32", "fp32")
    again = target_weights(TINY, str(tmp_path))
    assert again.keys() == weights.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in weights.items())
    assert all(tensor.is_contiguous() for tensor in again.values())


def test_packed_experts_are_their_mxfp4_values_and_the_rest_bf16(tmp_path):
    weights = target_weights(TINY, "random:0")
    save_target(tmp_path, TINY, weights)
    again = target_weights(TINY, str(tmp_path))
    for name, tensor in weights.items():
        if "experts_" in name:
            expected = mxfp4_round(tensor.transpose(1, 2)).transpose(1, 2)
        elif "router" in name:
            expected = tensor
        else:
            expected = tensor.bfloat16().float()
        assert torch.equal(again[name], expected), name
    save_target(tmp_path / "again", TINY, again)
    twice = target_weights(TINY, str(tmp_path / "again"))
    assert all(torch.equal(twice[name], tensor) for name, tensor in again.items())
    rounded = target_weights(TINY, "random:0", experts="mxfp4")
    assert all(torch.equal(rounded[n], again[n]) for n in weights if "experts_" in n)


def test_packed_bytes_are_low_nibble_first_with_e8m0_scales(tmp_path):
    """One row of 32: 6, -0.5, 1, then zeros, times 2^-3."""
    weights = target_weights(TINY, "random:0")
    row = torch.zeros(32)
    row[:3] = torch.tensor([6.0, -0.5, 1.0])
    weights["layers.2.experts_down"][3, :, 5] = row / 8
    save_target(tmp_path, TINY, weights)
    stored = load_file(tmp_path / "model.safetensors")
    assert stored[EXPERT].shape == (64, 16)
    assert stored[EXPERT][5, :2].tolist() == [0x7 | 0x9 << 4, 0x2]
    assert stored[f"{EXPERT}_scale"][5].tolist() == [127 - 3]


def test_fp8_projections_are_numbers_times_a_scale_a_channel(folder):
    stored = load_file(folder / "model.safetensors")
    name = f"{AT}0.self_attn.o_proj.weight"
    assert stored[name].dtype == torch.float8_e4m3fn
    assert stored[f"{name}_scale"].shape == (64, 1)
    expected = (stored[name].float() * stored[f"{name}_scale"]).T
    assert torch.equal(target_weights(TINY, str(folder))["layers.0.o"], expected)
    close = target_weights(TINY, "random:0")["layers.0.o"]
    assert (expected - close).abs().max() < close.abs().max() / 16
    packed = {name for name, tensor in stored.items() if tensor.dtype == torch.float8_e4m3fn}
    assert f"{AT}0.mlp.up_proj.weight" in packed
    assert f"{AT}1.self_attn.index_q_proj.weight" in packed
    assert not any("moe" in one or "embed" in one or "lm_head" in one for one in packed)


@pytest.mark.parametrize("method", ["eagle3", "dspark"])
def test_drafts_are_kept_beside_the_target(folder, method):
    again = draft_weights(TINY, method, str(folder))
    weights = draft_weights(TINY, method, "random:0")
    assert all(torch.equal(again[n], tensor.bfloat16().float()) for n, tensor in weights.items())


def test_names_without_the_wrapper_are_read_too(folder):
    before = target_weights(TINY, str(folder))
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("language_model."): tensor for name, tensor in tensors.items()}
    save_file(bare | {"vision_tower.x": torch.ones(1)}, folder / "model.safetensors")
    after = target_weights(TINY, str(folder))
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_shards_are_one_checkpoint(folder):
    before = target_weights(TINY, str(folder))
    sharded(folder)
    after = target_weights(TINY, str(folder))
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["text", "with vision"])
def test_what_transformers_saves_is_read(tmp_path, whole):
    """The text model is saved with its modules' names, the whole one with the checkpoint's."""
    import infx.engine
    from tests.engine.public_models import public_text_model, public_whole_model, shape_named

    make = public_whole_model if whole else public_text_model
    public = make(shape_named("m3.1"), seed=2)
    public.save_pretrained(tmp_path, max_shard_size="60KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    shape = shape_of_source("auto", str(tmp_path))
    model = infx.engine.from_transformers(public)
    weights = target_weights(shape, str(tmp_path))
    assert torch.equal(weights["embed"], model.embed)
    from infx.engine.model.reference import ReferenceModel

    tokens = list(range(40))
    assert torch.equal(ReferenceModel(shape, weights).logits(tokens), model.logits(tokens))


def test_loading_mini_takes_less_than_a_second(tmp_path):
    save_target(tmp_path, mini(), target_weights(mini(), "random:0"))
    assert quiet_s(lambda: target_weights(mini(), str(tmp_path)), rounds=3) < 1
    assert (tmp_path / "model.safetensors").stat().st_size < 4.6e6


@pytest.mark.parametrize("others", ["bf16", "fp32"])
def test_a_loaded_checkpoint_has_let_go_of_its_files(tmp_path, others):
    own = target_weights(TINY, "random:5")
    checkpoint.save_target(tmp_path, TINY, own, projections=others, others=others, experts=others)
    save_draft(tmp_path, TINY, "eagle3", draft_weights(TINY, "eagle3", "random:5"))
    held = target_weights(TINY, str(tmp_path)), draft_weights(TINY, "eagle3", str(tmp_path))
    before = held[0]["layers.1.router_bias"].clone()
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(bytes(path.stat().st_size))
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert torch.equal(held[0]["layers.1.router_bias"], before)


def test_identity_is_of_the_files(folder):
    assert identity("random:7") == ""
    before = identity(str(folder))
    assert len(before) == 16
    assert identity(str(folder)) == before
    edited(folder, lambda tensors: tensors[EXPERT].__ixor__(1))
    assert identity(str(folder)) != before
