"""Everything that can be wrong with a checkpoint: its tensors, its files, its config.json."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from infx.engine.shapes import mini, mini_3_1
from infx.engine.weights import (
    draft_weights,
    save_target,
    shape_of_source,
    target_weights,
)
from infx.engine.weights.public_config import public_config, shape_of
from tests.engine.checkpoints import (
    AT,
    EXPERT,
    TINY,
    edited,
    refusal_of,
    sharded,
    sound_checkpoint,
    write_index,
)

torch.set_num_threads(1)


@pytest.fixture
def folder(tmp_path) -> Path:
    return sound_checkpoint(tmp_path)


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
