"""Number formats of the model's weights, and the hooks for ranks and drafts."""

from __future__ import annotations

import math
import random
import weakref
from dataclasses import replace

import pytest
import torch

from infx.domain.errors import UsageError
from infx.engine.arguments import parse
from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model import reference
from infx.engine.model.layers import FIRST_POSITIONS, Rotary, projection
from infx.engine.model.reference import ReferenceModel
from infx.engine.quant import fp8_quantise
from infx.engine.shapes import mini
from infx.engine.weights import checkpoint, target_weights

torch.set_num_threads(1)

SMALL = mini(
    hidden_size=64, num_layers=3, full_layers=1, heads=4, head_dim=16, rotary_dim=8, block_size=4,
    topk_blocks=2, experts=128, experts_per_token=4, expert_size=32, shared_size=32, dense_size=96,
    vocab_size=130, max_positions=2048, aux_layers=(0, 1, 2), block_layers=(0, 2),
)  # fmt: skip
WEIGHTS = target_weights(SMALL, "random:11")
TOKENS = random.Random(5).choices(range(130), k=500)


def normal(*size: int) -> torch.Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(sum(size)))


def routed(monkeypatch, model) -> list[tuple]:
    """What each expert layer routed: its arguments, and the sets of experts [row]."""
    told, route = [], reference.route

    def spy(*arguments):
        chosen, weight = route(*arguments)
        told.append((*arguments, [frozenset(row) for row in chosen.tolist()]))
        return chosen, weight

    with monkeypatch.context() as spied:
        spied.setattr(reference, "route", spy)
        model.logits(TOKENS)
    return told


def test_bf16_router_weights_change_few_choices_and_only_close_ones(monkeypatch):
    """Of 500 rows of random weights some choose other experts: those whose choice was close."""
    whole = routed(monkeypatch, ReferenceModel(SMALL, WEIGHTS))[0]
    half = routed(monkeypatch, ReferenceModel(replace(SMALL, router_dtype="bf16"), WEIGHTS))[0]
    assert torch.equal(whole[0], half[0])  # the layers before see the same rows
    router, bias = half[1], half[2]
    assert router.dtype == bias.dtype == torch.float32
    assert torch.equal(router, WEIGHTS["layers.1.router"].bfloat16().float())
    assert torch.equal(bias, WEIGHTS["layers.1.router_bias"])
    changed = [row for row, (a, b) in enumerate(zip(whole[-1], half[-1], strict=True)) if a != b]
    assert 1 <= len(changed) <= 50
    scores = torch.sigmoid(whole[0] @ whole[1]) + bias
    ranked = scores.sort(dim=-1, descending=True).values
    gap = ranked[:, 3] - ranked[:, 4]
    assert gap[changed].mean() < gap.mean() / 5


def test_fp8_projection_is_its_definition():
    x, weight = normal(5, 24), normal(24, 7)
    x[2] = 0
    x[3] *= 1e4
    out = projection(weight, "fp8")(x)
    for row in range(5):
        for column in range(7):
            a, b = x[row], weight[:, column]
            scales = [float(t.abs().max()) / 448 or 1.0 for t in (a, b)]
            parts = [
                (t / s).to(torch.float8_e4m3fn).double()
                for t, s in zip((a, b), scales, strict=True)
            ]
            expected = float(parts[0] @ parts[1]) * scales[0] * scales[1]
            assert float(out[row, column]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_fp8_rows_do_not_depend_on_the_others():
    x, product = normal(6, 24), projection(normal(24, 7), "fp8")
    alone = torch.cat([product(x[row : row + 1]) for row in range(6)])
    assert torch.allclose(product(x), alone, rtol=1e-6)


def test_fp8_is_for_attention_and_the_dense_mlp_alone(monkeypatch):
    """Head, embedding, router, experts and the shared expert beside them stay as they are."""
    packed = []

    def spy(weight, dtype):
        packed.append(weight) if dtype == "fp8" else None
        return projection(weight, dtype)

    monkeypatch.setattr(reference, "projection", spy)
    ReferenceModel(SMALL, WEIGHTS, projections="fp8")
    names = {name for name, own in WEIGHTS.items() if any(own is one for one in packed)}
    attention = {f"layers.{layer}.{name}" for layer in range(3) for name in ("qkv", "o")}
    assert names == attention | {"layers.0.up", "layers.0.down"}


def test_fp8_projections_keep_no_float32_weight_beside_them():
    weights = {name: tensor.clone() for name, tensor in WEIGHTS.items()}
    kept = {name: weakref.ref(tensor) for name, tensor in weights.items()}
    model = ReferenceModel(SMALL, weights, projections="fp8")
    del weights
    gone = {name for name, tensor in kept.items() if tensor() is None}
    attention = {f"layers.{layer}.{name}" for layer in range(3) for name in ("qkv", "o")}
    assert gone == attention | {"layers.0.up", "layers.0.down"}
    assert model.logits(TOKENS[:8]).isfinite().all()


def test_fp8_projections_are_close_to_float32_and_not_equal():
    whole = ReferenceModel(SMALL, WEIGHTS).logits(TOKENS[:64])
    packed = ReferenceModel(SMALL, WEIGHTS, projections="fp8").logits(TOKENS[:64])
    distance = (packed - whole).norm() / whole.norm()
    assert 1e-3 < distance < 0.5


def test_weights_from_an_fp8_checkpoint_quantise_to_themselves(tmp_path):
    checkpoint.save_target(tmp_path, SMALL, WEIGHTS, experts="fp32", projections="fp8")
    loaded = target_weights(SMALL, str(tmp_path))["layers.1.qkv"]
    numbers, scale = fp8_quantise(loaded, 0)
    first, _ = fp8_quantise(WEIGHTS["layers.1.qkv"], 0)
    assert torch.equal(numbers.float(), first.float())
    assert torch.allclose(numbers.float() * scale, loaded, rtol=1e-6)
    before = WEIGHTS["layers.1.qkv"]
    assert (loaded - before).abs().max() < before.abs().max() / 16


def test_mxfp4_experts_change_the_logits_of_the_same_seed():
    rounded = target_weights(SMALL, "random:11", experts="mxfp4")
    names = {name for name, own in WEIGHTS.items() if not torch.equal(own, rounded[name])}
    assert names == {
        f"layers.{n}.{part}" for n in (1, 2) for part in ("experts_up", "experts_down")
    }
    whole = ReferenceModel(SMALL, WEIGHTS).logits(TOKENS[:64])
    packed = ReferenceModel(SMALL, rounded).logits(TOKENS[:64])
    assert 1e-3 < (packed - whole).norm() / whole.norm() < 0.5


def doubled() -> dict[str, torch.Tensor]:
    summed = (".o", ".down", ".experts_down")
    return {name: 2 * own if name.endswith(summed) else own for name, own in WEIGHTS.items()}


def test_reduce_is_applied_to_attention_and_mlp_of_every_layer():
    """Twice the parts is the model with its last matrices doubled."""
    calls = []

    def reduce(part):
        calls.append(part)
        return 2 * part

    ours = ReferenceModel(SMALL, WEIGHTS, reduce=reduce).logits(TOKENS[:64])
    assert len(calls) == 2 * SMALL.num_layers
    expected = ReferenceModel(SMALL, doubled()).logits(TOKENS[:64])
    assert torch.allclose(ours, expected, atol=1e-4 * float(expected.abs().max()))


def test_a_simulated_rank_adds_its_own_part_once_for_each_rank():
    shape = replace(SMALL, simulated_ranks=2)
    ours = ReferenceModel(shape, WEIGHTS).logits(TOKENS[:64])
    expected = ReferenceModel(SMALL, doubled()).logits(TOKENS[:64])
    assert torch.allclose(ours, expected, atol=1e-4 * float(expected.abs().max()))


def test_a_draft_may_tap_other_layers():
    def tapped(taps):
        model = ReferenceModel(SMALL, WEIGHTS, taps=taps)
        cache = KvCache.empty(SMALL, 4)
        batch = make_batch([Span(TOKENS[:9], 0, [2, 0, 1])], SMALL.block_size)
        return model.forward(batch, cache)

    stream, usual = tapped(None)
    assert usual.shape == (9, 3 * 64)
    assert torch.equal(usual[:, -64:], stream)
    assert torch.equal(tapped((2, 0))[1], torch.cat([usual[:, -64:], usual[:, :64]], dim=-1))
    assert torch.equal(tapped(SMALL.block_layers)[1], torch.cat([usual[:, :64], stream], dim=-1))


def test_rotary_tables_grow_with_the_positions_that_are_used():
    far = FIRST_POSITIONS + 7
    growing, x = Rotary(16, 8, 5e6, 4 * FIRST_POSITIONS), normal(3, 1, 16)
    positions = torch.tensor([0, 5, far])
    turn = growing.at(positions)
    angle = float(far) * 5e6 ** (-2 / 8)
    assert float(turn.cos[2, 0, 1]) == pytest.approx(math.cos(angle), abs=1e-6)
    assert torch.equal(reference.rotate(x, growing.at(positions)), reference.rotate(x, turn))
    with pytest.raises(IndexError):
        Rotary(16, 8, 5e6, 64).at(torch.tensor([64]))


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--router-dtype", "fp16"], "--router-dtype fp16: expected fp32, bf16"),
        (["--expert-dtype", "fp8"], "--expert-dtype fp8: expected fp32, mxfp4"),
        (["--projection-dtype", "mxfp4"], "--projection-dtype mxfp4: expected fp32, fp8"),
    ],
)
def test_types_that_are_not_served_are_refused(argv, word):
    with pytest.raises(UsageError, match=word) as refused:
        parse(argv)
    assert refused.value.code == "unsupported-dtype"


def test_flags_reach_the_configuration():
    argv = ["--model", "mini_3_1", "--router-dtype", "bf16"]
    argv += ["--expert-dtype", "mxfp4", "--projection-dtype", "fp8"]
    config, _ = parse(argv)
    assert (config.expert_dtype, config.projection_dtype) == ("mxfp4", "fp8")
    assert config.shape == replace(mini(), name="mini_3_1", full_layers=0, router_dtype="bf16")
    assert parse(["--model", "m3", "--num-blocks", "5000"])[0].block_size == 128
