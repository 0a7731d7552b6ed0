"""Weights: random by seed, the weight map, checkpoints and all that can be wrong with one."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from infx.domain.errors import UsageError
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
from infx.engine.weights.public_config import public_config, shape_of
from tests.quiet_machine import quiet_s

torch.set_num_threads(1)

TINY = mini(
    hidden_size=64, num_layers=3, heads=4, head_dim=16, rotary_dim=8, block_size=4, topk_blocks=2,
    experts=4, experts_per_token=2, expert_size=32, shared_size=24, dense_size=40, vocab_size=130,
    max_positions=64, aux_layers=(0, 1, 2), block_layers=(0, 2),
)  # fmt: skip
WRAPPED = "language_model."
AT = f"{WRAPPED}model.layers."
EXPERT = f"{AT}2.block_sparse_moe.experts.3.w2.weight"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A sound checkpoint: MXFP4 experts, FP8 projections, both drafts."""
    weights = target_weights(TINY, "random:0")
    checkpoint.save_target(tmp_path, TINY, weights, experts="mxfp4", projections="fp8")
    for method in ("eagle3", "dspark"):
        save_draft(tmp_path, TINY, method, draft_weights(TINY, method, "random:0"))
    return tmp_path


def refusal_of(call) -> UsageError:
    with pytest.raises(UsageError) as refused:
        call()
    return refused.value


def edited(folder: Path, change, name: str = "model.safetensors") -> None:
    tensors = load_file(folder / name)
    change(tensors)
    save_file(tensors, folder / name)


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


# Everything that can be wrong with one


def change_norm(value: torch.Tensor):
    return lambda tensors: tensors.update({f"{AT}1.input_layernorm.weight": value})


FAULTS = {
    "missing": (
        lambda t: t.pop(f"{AT}0.self_attn.q_proj.weight"),
        "model.layers.0.self_attn.q_proj.weight is missing: expected F32 or BF16 or F16 [64, 64]",
    ),
    "extra": (
        lambda t: t.update({f"{AT}3.input_layernorm.weight": torch.ones(64)}),
        f"{AT}3.input_layernorm.weight is extra",
    ),
    "misshapen": (
        change_norm(torch.ones(63)),
        f"{AT}1.input_layernorm.weight is F32 [63]: expected F32 or BF16 or F16 [64]",
    ),
    "transposed": (
        lambda t: t.update({f"{AT}1.block_sparse_moe.gate.weight": torch.ones(64, 4)}),
        "gate.weight is F32 [64, 4]: expected F32 or BF16 or F16 [4, 64]",
    ),
    "wrong-type": (
        change_norm(torch.ones(64, dtype=torch.int64)),
        f"{AT}1.input_layernorm.weight is I64 [64]: expected F32",
    ),
    "nan": (
        change_norm(torch.full((64,), torch.nan)),
        f"{AT}1.input_layernorm.weight holds NaN or infinity",
    ),
    "infinity": (
        change_norm(torch.full((64,), -torch.inf)),
        f"{AT}1.input_layernorm.weight holds NaN or infinity",
    ),
    "nan-scale-of-an-expert": (
        lambda t: t[f"{EXPERT}_scale"].fill_(255),
        f"{EXPERT} holds NaN or infinity",
    ),
    "expert-without-scale": (
        lambda t: t.pop(f"{EXPERT}_scale"),
        "experts.3.w2.weight_scale is missing: expected U8 [64, 1]",
    ),
    "misshapen-scale": (
        lambda t: t.update({f"{EXPERT}_scale": torch.ones(64, 2, dtype=torch.uint8)}),
        f"{EXPERT}_scale is U8 [64, 2]: expected U8 [64, 1]",
    ),
    "unpacked-expert-bytes": (
        lambda t: t.update({EXPERT: torch.ones(64, 32, dtype=torch.uint8)}),
        f"{EXPERT} is U8 [64, 32]: expected U8 [64, 16]",
    ),
    "fp8-without-scale": (
        lambda t: t.pop(f"{AT}0.self_attn.o_proj.weight_scale"),
        "o_proj.weight_scale is missing: expected F32 [64, 1]",
    ),
    "fp8-where-it-may-not-be": (
        lambda t: t.update(
            {"language_model.lm_head.weight": t[f"{AT}0.mlp.down_proj.weight"].clone()}
        ),
        "lm_head.weight is F8_E4M3 [64, 40]: expected F32 or BF16 or F16 [130, 64]",
    ),
    "scale-of-nothing": (
        lambda t: t.update({f"{AT}0.input_layernorm.weight_scale": torch.ones(1)}),
        f"{AT}0.input_layernorm.weight_scale is extra",
    ),
    "twice": (
        lambda t: t.update({"lm_head.weight": torch.ones(130, 64)}),
        "lm_head.weight: the same tensor as",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_tensor_is_named_with_what_was_found_and_expected(folder, fault):
    change, words = FAULTS[fault]
    edited(folder, change)
    refused = refusal_of(lambda: target_weights(TINY, str(folder)))
    assert refused.code == "bad-checkpoint"
    assert words in str(refused)


def test_all_faults_are_said_at_once_and_the_first_ten_in_words(folder):
    def spoil(tensors):
        for name in [name for name in tensors if ".w1." in name and name.endswith("weight")]:
            del tensors[name]
        tensors["language_model.model.norm.weight"] = torch.ones(3)
        tensors["another"] = torch.ones(3)

    edited(folder, spoil)
    text = str(refusal_of(lambda: target_weights(TINY, str(folder))))
    assert text.count("missing") + text.count("extra") + text.count("expected F32") >= 10
    assert "more" in text
    assert "\n" not in text


FILES = {
    "cut-short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "cut-in-the-header": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "empty": lambda path: path.write_bytes(b""),
    "no-safetensors": lambda path: path.write_bytes(b"PK\3\4" + bytes(500)),
    "header-too-long": lambda path: path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:]),
    "broken-header": lambda path: path.write_bytes(
        path.read_bytes().replace(b"shape", b"shap\xff", 1)
    ),
    "absent": lambda path: path.unlink(),
    "a-folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("fault", FILES)
@pytest.mark.parametrize("name", ["model.safetensors", "dspark.safetensors"])
def test_a_broken_file_is_named(folder, name, fault):
    FILES[fault](folder / name)
    refused = refusal_of(
        lambda: (target_weights(TINY, str(folder)), draft_weights(TINY, "dspark", str(folder)))
    )
    assert refused.code == "bad-checkpoint"
    assert name in str(refused)


def test_a_broken_index_or_shard_is_named(folder):
    index = sharded(folder)
    first, second = sorted(set(index.values()))

    def told() -> str:
        refused = refusal_of(lambda: target_weights(TINY, str(folder)))
        assert refused.code == "bad-checkpoint"
        return str(refused)

    name = next(name for name, shard in index.items() if shard == first)
    write_index(folder, index | {name: second})
    assert f"{second}: {name} is missing" in told()
    assert f"{first}: {name} is extra" in told()
    write_index(folder, index | {name: "../elsewhere.safetensors"})
    assert "../elsewhere.safetensors" in told()
    write_index(folder, index | {name: 5})
    assert "expected a file of the folder" in told()
    write_index(folder, ["no", "map"])
    assert "weight_map" in told()
    (folder / "model.safetensors.index.json").write_text("{")
    assert "model.safetensors.index.json" in told()
    write_index(folder, index)
    (folder / second).unlink()
    assert f"{second}: no such file" in told()


DRAFT_FAULTS = {
    "missing": (lambda t: t.pop("mask"), "mask is missing: expected F32 or BF16 or F16 [64]"),
    "extra": (lambda t: t.update({"x": torch.ones(1)}), "x is extra"),
    "misshapen": (lambda t: t.update({"fc": torch.ones(3, 64)}), "fc is F32 [3, 64]: expected"),
    "nan": (lambda t: t["fc"].fill_(torch.nan), "fc holds NaN"),
}


@pytest.mark.parametrize("fault", DRAFT_FAULTS)
def test_a_faulty_draft_is_named(folder, fault):
    change, words = DRAFT_FAULTS[fault]
    edited(folder, change, "dspark.safetensors")
    refused = refusal_of(lambda: draft_weights(TINY, "dspark", str(folder)))
    assert refused.code == "bad-checkpoint"
    assert words in str(refused)


# config.json


def test_a_shape_survives_its_config_json():
    for shape in (mini(), mini_3_1(), TINY):
        text = json.loads(json.dumps(public_config(shape)))
        assert shape_of(text, shape.name) == shape
        bare = text["text_config"] | {"infx": text["infx"]}
        assert shape_of(bare, shape.name) == shape


PUBLIC = {
    "model_type": "minimax_m3_vl",
    "text_config": {
        "hidden_size": 6144, "num_hidden_layers": 60, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 128, "rotary_dim": 64, "partial_rotary_factor": 0.5,
        "rope_theta": 5000000, "num_local_experts": 128, "num_experts_per_tok": 4,
        "intermediate_size": 3072, "shared_intermediate_size": 3072,
        "dense_intermediate_size": 12288, "vocab_size": 200064, "max_position_embeddings": 524288,
        "rms_norm_eps": 1e-06, "routed_scaling_factor": 2.0, "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0, "hidden_act": "swigluoai", "scoring_func": "sigmoid",
        "n_shared_experts": 1, "qk_norm_type": "per_head", "tie_word_embeddings": False,
        "moe_layer_freq": [0] * 3 + [1] * 57,
        "sparse_attention_config": {
            "use_sparse_attention": True, "sparse_index_dim": 128, "sparse_num_index_heads": 4,
            "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_score_type": "max",
            "sparse_init_block": 0, "sparse_local_block": 1,
            "sparse_attention_freq": [0] * 3 + [1] * 57,
        },
    },
}  # fmt: skip


def test_the_public_checkpoints_form_is_m3():
    from infx.engine.shapes import m3, m3_1
    from infx.engine.weights.public_config import differences

    assert differences(shape_of(PUBLIC, "m3"), m3()) == []
    text = json.loads(json.dumps(PUBLIC))
    text["text_config"]["sparse_attention_config"]["sparse_attention_freq"] = [1] * 60
    assert differences(shape_of(text, "m3_1"), m3_1()) == []


CONFIGS = {
    "hidden_size": (None, "hidden_size is missing"),
    "num_attention_heads": ("8", 'num_attention_heads "8": expected a whole number'),
    "vocab_size": (True, "vocab_size true: expected a whole number"),
    "num_hidden_layers": (-3, "num_hidden_layers -3"),
    "swiglu_limit": ("seven", 'swiglu_limit "seven": expected a number'),
    "rms_norm_eps": (0, "rms_norm_eps 0.0: expected a finite number above 0"),
    "head_dim": (10, "index_head_dim 16: expected 10, as head_dim"),
    "index_local_blocks": (2, "index_local_blocks 2: expected 1"),
    "layer_types": (["full_attention"], "layer_types of 1 entries: expected 3"),
    "mlp_layer_types": (["sparse", "dense", "sparse"], "expected dense in the first layers only"),
    "scoring_func": ("softmax", 'scoring_func "softmax": expected sigmoid'),
    "attention_bias": (True, "attention_bias true: expected False"),
    "model_type": ("llama", 'model_type "llama"'),
    "rope_parameters": ({"rope_type": "yarn"}, 'rope_type "yarn": expected default'),
    "num_key_value_heads": (3, "index_n_heads 2: expected 3"),
    "sparse_attention_config": ([1], "sparse_attention_config of 1 entries: expected an object"),
    "routed_scaling_factor": (1e300, "routed_scaling_factor 1e+300: expected a number, finite"),
}
ROPES = [
    ({"rope_theta": 0}, "rope_theta 0.0: expected a finite number above 0"),
    ({"partial_rotary_factor": math.nan}, "partial_rotary_factor NaN: expected a number, finite"),
    ({"partial_rotary_factor": -math.inf}, "partial_rotary_factor -Infinity: expected a number"),
    ({"partial_rotary_factor": 2}, "rotary_dim 32: expected at most head_dim 16"),
    ("default", 'rope_parameters "default": expected an object'),
]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [*((f, *case) for f, case in CONFIGS.items()), *(("rope_parameters", *case) for case in ROPES)],
)
def test_a_configuration_that_the_layers_cannot_serve_is_refused(folder, field, value, words):
    config = json.loads((folder / "config.json").read_text())
    config["text_config"][field] = value
    (folder / "config.json").write_text(json.dumps(config))
    refused = refusal_of(lambda: shape_of_source("auto", str(folder)))
    assert refused.code == "unserved-config"
    assert words in str(refused)
    assert "config.json" in str(refused) or "the shape of" in str(refused)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"text_config": 3}', "[" * 100_000], ids=range(5))
def test_a_config_json_that_is_none_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    refused = refusal_of(lambda: shape_of_source("auto", str(folder)))
    assert refused.code in ("bad-checkpoint", "unserved-config")
    assert "config.json" in str(refused)


def test_config_json_must_describe_the_named_model(folder, tmp_path):
    assert shape_of_source("auto", str(folder)).hidden_size == 64
    refused = refusal_of(lambda: shape_of_source("mini", str(folder)))
    assert refused.code == "bad-checkpoint"
    for words in ("hidden_size 64: expected 192", "num_layers 3: expected 5", "--model auto"):
        assert words in str(refused)
    (tmp_path / "sound").mkdir()
    sound = tmp_path / "sound" / "config.json"
    sound.write_text(json.dumps(public_config(mini())))
    assert shape_of_source("mini", str(sound.parent)) == mini()


@pytest.mark.parametrize(
    ("model", "source", "code"),
    [
        ("mini", "random:", "unsupported-weights"),
        ("mini", "random:x", "unsupported-weights"),
        ("mini", "random:" + "9" * 30, "unsupported-weights"),
        ("mini", "random:²", "unsupported-weights"),
        ("mini", "/no/such/folder", "unsupported-weights"),
        ("m3", "shipped", "unsupported-weights"),
        ("auto", "random:0", "unsupported-model"),
        ("auto", "shipped", "unsupported-weights"),
        ("gpt", "random:0", "unsupported-model"),
    ],
)
def test_a_source_that_is_none_is_refused(model, source, code):
    assert refusal_of(lambda: shape_of_source(model, source)).code == code


def test_experts_without_whole_groups_cannot_be_packed(folder, tmp_path):
    uneven = replace(TINY, expert_size=48)
    refused = refusal_of(lambda: target_weights(uneven, str(folder)))
    assert "expert_size 48: expected a multiple of 32" in str(refused)
    shape = mini(expert_size=40)
    weights = target_weights(shape, "random:0")
    for call in (
        lambda: save_target(tmp_path, shape, weights),
        lambda: target_weights(shape, "random:0", experts="mxfp4"),
    ):
        refused = refusal_of(call)
        assert "expert_size 40: expected a multiple of 32" in str(refused)


def test_sizes_sources_and_the_package_need_no_torch():
    script = (
        "import sys, infx.engine, infx.engine.weights as w, infx.engine.arguments as a\n"
        "from infx.engine.shapes import m3\n"
        "assert callable(infx.engine.from_transformers)\n"
        "w.target_sizes(m3()), w.shape_of_source('mini', 'random:0'), w.identity('random:0')\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
