"""The reference model against slow loops over single numbers, written from the formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.attention import choose_blocks
from infx.engine.model.experts import mix, route
from infx.engine.model.layers import Rotary, gemma_norm, rotate, swiglu_oai
from infx.engine.model.reference import ReferenceModel
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.driving_engine import prompt

TINY = mini(
    hidden_size=32, num_layers=3, heads=4, head_dim=8, rotary_dim=4, block_size=4, topk_blocks=2,
    experts=6, experts_per_token=2, expert_size=12, shared_size=8, dense_size=20, vocab_size=320,
    max_positions=64, aux_layers=(0, 1, 2), block_layers=(0, 1, 2),
)  # fmt: skip


def norm(x, weight):
    rms = math.sqrt(sum(v * v for v in x) / len(x) + TINY.rms_norm_eps)
    return [v / rms * (1 + w) for v, w in zip(x, weight, strict=True)]


def times(x, matrix):
    return [
        sum(a * b for a, b in zip(x, column, strict=True)) for column in zip(*matrix, strict=True)
    ]


def turned(x, position):
    half, out = TINY.rotary_dim // 2, list(x)
    for i in range(half):
        angle = position * TINY.rope_theta ** (-2 * i / TINY.rotary_dim)
        cos, sin = math.cos(angle), math.sin(angle)
        out[i] = x[i] * cos - x[i + half] * sin
        out[i + half] = x[i + half] * cos + x[i] * sin
    return out


def swiglu(x):
    half = len(x) // 2
    out = []
    for gate, up in zip(x[:half], x[half:], strict=True):
        gate, up = min(gate, 7.0), max(-7.0, min(up, 7.0))
        out.append((up + 1) * gate / (1 + math.exp(-1.702 * gate)))
    return out


def attend(query, keys, values):
    scores = [
        sum(a * b for a, b in zip(query, k, strict=True)) / math.sqrt(len(query)) for k in keys
    ]
    exps = [math.exp(s - max(scores)) for s in scores]
    mixed = [0.0] * len(query)
    for weight, value in zip(exps, values, strict=True):
        mixed = [m + weight / sum(exps) * v for m, v in zip(mixed, value, strict=True)]
    return mixed


def chosen_keys(queries, keys, t):
    """Positions that one index head's row t attends to."""
    block = TINY.block_size
    blocks = {}
    for j in range(t + 1):
        score = sum(a * b for a, b in zip(queries, keys[j], strict=True))
        blocks[j // block] = max(blocks.get(j // block, -math.inf), score)
    blocks[t // block] = math.inf
    best = sorted(blocks, key=lambda b: (-blocks[b], b))[: TINY.topk_blocks]
    return [j for j in range(t + 1) if j // block in best]


def mlp(x, weights, at):
    return times(swiglu(times(x, weights[f"{at}up"])), weights[f"{at}down"])


def experts(x, weights, at):
    p = [1 / (1 + math.exp(-z)) for z in times(x, weights[at + "router"])]
    order = sorted(range(len(p)), key=lambda e: (-(p[e] + weights[at + "router_bias"][e]), e))
    chosen = order[: TINY.experts_per_token]
    out = mlp(x, weights, at)
    for e in chosen:
        inner = swiglu(times(x, weights[at + "experts_up"][e]))
        share = TINY.routed_scaling_factor * p[e] / sum(p[c] for c in chosen)
        done = times(inner, weights[at + "experts_down"][e])
        out = [o + share * d for o, d in zip(out, done, strict=True)]
    return out


def heads_of(flat):
    dim = TINY.head_dim
    return [flat[i : i + dim] for i in range(0, len(flat), dim)]


def slow_layer(streams, weights, layer, shape):
    at, sparse = f"layers.{layer}.", shape.attends_sparsely(layer)
    h, g = TINY.heads, TINY.kv_heads
    rows = []
    for t, stream in enumerate(streams):
        x = norm(stream, weights[at + "attention_norm"])
        parts = heads_of(times(x, weights[at + "qkv"]))
        for i, weight in enumerate(weights[at + "head_norm"]):
            parts[i] = turned(norm(parts[i], weight), t)
        rows.append(parts)
    out = []
    for t, stream in enumerate(streams):
        mixed = []
        for head in range(h):
            kv = head // (h // g)
            seen = list(range(t + 1))
            if sparse:
                index_keys = [row[h + 2 * g] for row in rows]
                seen = chosen_keys(rows[t][h + g + kv], index_keys, t)
            values = [rows[j][len(rows[j]) - g + kv] for j in seen]
            mixed += attend(rows[t][head], [rows[j][h + kv] for j in seen], values)
        added = times(mixed, weights[at + "o"])
        stream = [s + a for s, a in zip(stream, added, strict=True)]
        x = norm(stream, weights[at + "mlp_norm"])
        more = experts(x, weights, at) if shape.has_experts(layer) else mlp(x, weights, at)
        out.append([s + m for s, m in zip(stream, more, strict=True)])
    return out


@pytest.mark.parametrize("full_layers", [1, 0], ids=["m3", "m3.1"])
def test_the_model_is_its_formulas_from_embedding_to_logits(full_layers):
    shape = replace(TINY, full_layers=full_layers)
    weights = target_weights(shape, "random:5")
    slow = {name: tensor.double().tolist() for name, tensor in weights.items()}
    tokens = prompt(1, 23)  # 6 blocks, of which a row sees 2
    streams = [slow["embed"][token] for token in tokens]
    for layer in range(TINY.num_layers):
        streams = slow_layer(streams, slow, layer, shape)
    expected = torch.tensor([times(norm(s, slow["norm"]), slow["head"]) for s in streams])

    model, cache = ReferenceModel(shape, weights), KvCache.empty(shape, 8)
    hidden, aux = model.forward(make_batch([Span(tokens, 0, [3, 1, 7, 0, 2, 5])], 4), cache)

    assert torch.allclose(model.head(hidden), expected, atol=1e-4 * expected.abs().max())
    assert torch.equal(aux[:, -TINY.hidden_size :], hidden)


def test_the_local_block_is_always_chosen_and_ties_go_to_the_lower_block():
    scores = torch.tensor([[[[5.0, 5.0, 5.0, 1.0, -math.inf]]]])
    chosen = choose_blocks(scores, torch.tensor([[13]]), block=4, topk=3)
    assert chosen.flatten().tolist() == [3, 0, 1]


def test_route_breaks_ties_to_the_lower_expert_and_weighs_without_the_bias():
    x, router = torch.ones(1, 2), torch.zeros(2, 4)
    chosen, weight = route(x, router, torch.tensor([0.0, 0.0, 9.0, 0.0]), topk=2, scale=2.0)
    assert chosen.tolist() == [[2, 0]]
    assert weight.tolist() == [[1.0, 1.0]]


def test_mix_does_not_depend_on_the_other_rows():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(9, 16, generator=generator)
    up, down = (torch.randn(5, *s, generator=generator) for s in ((16, 24), (12, 16)))
    chosen = torch.stack([torch.randperm(5, generator=generator)[:2] for _ in range(9)])
    weight = torch.rand(9, 2, generator=generator)
    together = mix(x, chosen, weight, up, down, 1.702, 7.0)
    alone = [
        mix(x[i : i + 1], chosen[i : i + 1], weight[i : i + 1], up, down, 1.702, 7.0)
        for i in range(9)
    ]
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)


def test_swiglu_clamps_the_gate_above_and_the_up_half_on_both_sides():
    x = torch.tensor([[100.0, 1.0, -100.0, 50.0, -50.0, 2.0]])
    assert swiglu_oai(x, 1.702, 7.0)[0].tolist() == pytest.approx(swiglu(x[0].tolist()), rel=1e-5)


def test_rotary_turns_only_the_first_dimensions_and_keeps_lengths():
    x = torch.randn(3, 2, 8, generator=torch.Generator().manual_seed(0))
    out = rotate(x, Rotary(8, 4, 5e6, 64).at(torch.tensor([0, 7, 63])))
    assert torch.equal(out[0], x[0])
    assert torch.equal(out[..., 4:], x[..., 4:])
    assert torch.allclose(out.norm(dim=-1), x.norm(dim=-1), atol=1e-5)


def test_gemma_norm_scales_by_one_plus_the_weight():
    assert gemma_norm(torch.tensor([3.0, -3.0]), torch.tensor([0.0, 1.0]), 0.0).tolist() == [1, -2]


def test_random_weights_depend_on_seed_and_name_alone():
    one, two = target_weights(TINY, "random:0"), target_weights(TINY, "random:1")
    deeper = target_weights(mini(**_fields(num_layers=4)), "random:0")
    assert not torch.equal(one["embed"], two["embed"])
    assert all(torch.equal(tensor, deeper[name]) for name, tensor in one.items())


def _fields(**changes):
    return {name: getattr(TINY, name) for name in TINY.__slots__ if name not in ("name",)} | changes
