"""The model family: presets, which layer does what, misfits named."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from infx.domain.errors import UsageError
from infx.engine.config import EngineConfig
from infx.engine.memory import needed_bytes, refuse_too_large
from infx.engine.shapes import MODELS, m3, m3_1, m3_tp4_rank, mini, mini_3_1
from infx.engine.weights import draft_sizes, target_sizes, total_bytes
from infx.engine.weights.public_config import public_config


def kinds(shape) -> list[str]:
    return [
        f"{'sparse' if shape.attends_sparsely(n) else 'full'}"
        f" {'experts' if shape.has_experts(n) else 'dense'}"
        for n in range(shape.num_layers)
    ]


def test_true_shapes_are_those_of_the_public_configuration():
    shape = m3()
    assert (shape.hidden_size, shape.num_layers, shape.experts) == (6144, 60, 128)
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.rotary_dim) == (64, 4, 128, 64)
    assert kinds(shape) == ["full dense"] * 3 + ["sparse experts"] * 57


def test_m3_1_attends_sparsely_in_its_dense_layers_and_is_else_the_same():
    assert kinds(m3_1()) == ["sparse dense"] * 3 + ["sparse experts"] * 57
    assert kinds(mini_3_1()) == ["sparse dense"] + ["sparse experts"] * 4
    assert replace(m3_1(), name="m3", full_layers=3) == m3()
    assert replace(mini_3_1(), name="mini", full_layers=1) == mini()


def test_a_rank_holds_the_public_slices_and_says_that_its_sum_is_simulated():
    shape, sizes = m3_tp4_rank(), target_sizes(m3_tp4_rank())
    assert sizes["layers.3.qkv"] == (6144, 2560)
    assert sizes["layers.3.o"] == (2048, 6144)
    assert sizes["layers.3.experts_up"] == (128, 6144, 1536)
    assert sizes["layers.3.experts_down"] == (128, 768, 6144)
    assert sizes["layers.3.router"] == (6144, 128)
    assert (shape.simulated_ranks, m3().simulated_ranks) == (4, 1)


def test_every_preset_has_its_own_name():
    assert {name: make().name for name, make in MODELS.items()} == {name: name for name in MODELS}


def test_mini_has_the_parameters_that_its_docstring_says():
    assert total_bytes(target_sizes(mini())) / 4e6 == pytest.approx(4.8, abs=0.05)
    assert total_bytes(draft_sizes(mini(), "dspark")) / 4 == 881_984


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kv_heads": 3}, ["heads 8: expected a multiple of kv_heads 3"]),
        ({"rotary_dim": 15}, ["rotary_dim 15: expected an even number"]),
        ({"rotary_dim": 64}, ["rotary_dim 64: expected at most head_dim 32"]),
        ({"experts_per_token": 17}, ["experts_per_token 17: expected at most experts 16"]),
        ({"full_layers": 6}, ["full_layers 6: expected 0 to 5"]),
        ({"dense_layers": -1}, ["dense_layers -1: expected 0 to 5"]),
        ({"aux_layers": (0, 2, 5)}, ["aux_layers (0, 2, 5): expected ascending layers from 0"]),
        ({"aux_layers": (0, 2)}, ["aux_layers (0, 2): expected 3 layers"]),
        ({"block_layers": ()}, ["block_layers ()"]),
        ({"block_layers": (3, 1)}, ["block_layers (3, 1)"]),
        ({"router_dtype": "fp16"}, ["router_dtype fp16: expected fp32 or bf16"]),
        ({"hidden_size": 0}, ["hidden_size 0: expected 1 to 2147483647"]),
        ({"topk_blocks": 10**30}, ["topk_blocks 1" + "0" * 30 + ": expected 1 to 2147483647"]),
        ({"rms_norm_eps": math.nan}, ["rms_norm_eps nan"]),
        ({"kv_heads": 3, "rotary_dim": 33}, ["kv_heads 3", "even number", "at most head_dim"]),
    ],
)
def test_misfits_are_named_all_at_once(changes, words):
    with pytest.raises(UsageError) as refused:
        mini(**changes)
    assert refused.value.code == "unserved-config"
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize("model", ["m3", "m3_1", "m3_tp4_rank"])
def test_a_model_that_does_not_fit_is_refused_before_anything_is_made(model):
    config = EngineConfig(model=model, block_size=128, num_blocks=100, max_model_len=2048)
    weights, cache = needed_bytes(config)
    assert weights > 400e9
    with pytest.raises(UsageError, match=f"{weights + cache} bytes together") as refused:
        refuse_too_large(config)
    assert refused.value.code == "too-little-memory"


def test_a_model_that_fits_is_not_refused():
    refuse_too_large(EngineConfig(model="mini_3_1", num_blocks=100, max_model_len=512))


def test_needed_memory_counts_the_draft():
    alone = EngineConfig(num_blocks=100, max_model_len=512)
    drafted = EngineConfig(num_blocks=100, max_model_len=512, method="dspark", k=7)
    sizes = draft_sizes(mini(), "dspark")
    assert needed_bytes(drafted)[0] - needed_bytes(alone)[0] == total_bytes(sizes)
    assert needed_bytes(drafted)[1] > needed_bytes(alone)[1]


def test_every_rank_loads_the_whole_target():
    alone = EngineConfig(num_blocks=100, max_model_len=512)
    assert needed_bytes(replace(alone, tp=2))[0] == 2 * needed_bytes(alone)[0]


def test_a_vocabulary_smaller_than_the_tokenizers_is_refused(tmp_path):
    config = public_config(mini(vocab_size=200))
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="vocab_size 200 of") as refused:
        EngineConfig(model="auto", weights=str(tmp_path))
    assert refused.value.code == "unserved-config"
