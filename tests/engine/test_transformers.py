"""The reference model against the public one: MiniMax-M3's text model of `transformers`."""

from __future__ import annotations

import random
from itertools import chain

import pytest
import torch

from infx.engine.batch import Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model import reference
from infx.engine.model.reference import ReferenceModel
from infx.engine.shapes import ModelConfig, mini

pytestmark = pytest.mark.slow

TINY = {
    "hidden_size": 48, "num_layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 16, "rotary_dim": 8,
    "block_size": 4, "topk_blocks": 3, "experts": 8, "experts_per_token": 2, "expert_size": 24,
    "shared_size": 32, "dense_size": 40, "vocab_size": 97, "aux_layers": (0, 1, 2),
}  # fmt: skip
SHAPES = {
    "tiny": TINY,
    "whole-rotary": TINY | {"rotary_dim": 16, "heads": 6, "kv_heads": 3, "dense_layers": 2},
    "no-dense-layer": TINY | {"dense_layers": 0, "topk_blocks": 1, "experts_per_token": 4},
    "low-limit": TINY | {"kv_heads": 1, "block_size": 8, "topk_blocks": 2, "swiglu_limit": 0.25},
    "mini": {},
}


def public_model(shape: ModelConfig, seed: int):
    """The text model of `transformers` at ``shape``, every tensor random, norms and biases too."""
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as public
    from transformers.models.minimax_m3_vl.configuration_minimax_m3_vl import (
        MiniMaxM3VLTextConfig,
    )

    sparse = [number >= shape.dense_layers for number in range(shape.num_layers)]
    config = MiniMaxM3VLTextConfig(
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.num_layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        rotary_dim=shape.rotary_dim,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": shape.rope_theta,
            "partial_rotary_factor": shape.rotary_dim / shape.head_dim,
        },
        index_n_heads=shape.kv_heads,
        index_head_dim=shape.head_dim,
        index_block_size=shape.block_size,
        index_topk_blocks=shape.topk_blocks,
        index_local_blocks=1,
        num_local_experts=shape.experts,
        num_experts_per_tok=shape.experts_per_token,
        intermediate_size=shape.expert_size,
        shared_intermediate_size=shape.shared_size,
        dense_intermediate_size=shape.dense_size,
        vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_positions,
        rms_norm_eps=shape.rms_norm_eps,
        routed_scaling_factor=shape.routed_scaling_factor,
        swiglu_alpha=shape.swiglu_alpha,
        swiglu_limit=shape.swiglu_limit,
        layer_types=["minimax_m3_sparse" if s else "full_attention" for s in sparse],
        mlp_layer_types=["sparse" if s else "dense" for s in sparse],
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
        experts_implementation="eager",
    )
    model = public.MiniMaxM3VLForCausalLM(config).float().eval()
    generator = torch.Generator().manual_seed(seed)
    for tensor in model.state_dict().values():
        tensor.normal_(generator=generator).mul_(
            0.3 if tensor.ndim == 1 else tensor.shape[-1] ** -0.5
        )
    return model


def our_weights(public, shape: ModelConfig) -> dict[str, torch.Tensor]:
    """The public model's tensors by our names, matrices [in, out]."""
    theirs = public.state_dict()
    weights = {
        "embed": theirs["model.embed_tokens.weight"],
        "norm": theirs["model.norm.weight"],
        "head": theirs["lm_head.weight"].T,
    }
    for number in range(shape.num_layers):
        prefix = f"model.layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in theirs.items() if k.startswith(prefix)}
        for name, tensor in our_layer(own, shape).items():
            weights[f"layers.{number}.{name}"] = tensor.contiguous()
    return weights


def our_layer(own: dict[str, torch.Tensor], shape: ModelConfig) -> dict[str, torch.Tensor]:
    sparse = "mlp.gate.weight" in own
    normed = [("q", shape.heads), ("k", shape.kv_heads)]
    if sparse:
        normed += [("indexer.q", shape.kv_heads), ("indexer.k", 1)]
    projections = [own[f"self_attn.{name}_proj.weight"] for name, _ in [*normed, ("v", 0)]]
    norms = [own[f"self_attn.{name}_norm.weight"].expand(count, -1) for name, count in normed]
    mlp = "mlp.shared_experts" if sparse else "mlp"
    layer = {
        "attention_norm": own["input_layernorm.weight"],
        "mlp_norm": own["post_attention_layernorm.weight"],
        "head_norm": torch.cat(norms),
        "qkv": torch.cat(projections).T,
        "o": own["self_attn.o_proj.weight"].T,
        "up": own[f"{mlp}.gate_up_proj.weight"].T,
        "down": own[f"{mlp}.down_proj.weight"].T,
    }
    if sparse:
        layer |= {
            "router": own["mlp.gate.weight"].T,
            "router_bias": own["mlp.gate.e_score_correction_bias"],
            "experts_up": own["mlp.experts.gate_up_proj"].transpose(1, 2),
            "experts_down": own["mlp.experts.down_proj"].transpose(1, 2),
        }
    return layer


@torch.inference_mode()
def what_they_compute(public, tokens: list[int]):
    """Logits, and for each sparse layer the sets of blocks [row][head] and of experts [row]."""
    blocks, experts, hooks = [], [], []
    for layer in public.model.layers:
        if layer.self_attn.indexer is None:
            continue
        hooks += [
            layer.self_attn.indexer.register_forward_hook(lambda *told: blocks.append(told[2][0])),
            layer.mlp.gate.register_forward_hook(lambda *told: experts.append(told[2][2])),
        ]
    logits = public(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    for hook in hooks:
        hook.remove()
    return (
        logits,
        [[[{b for b in head if b >= 0} for head in row] for row in layer.transpose(0, 1).tolist()]
         for layer in blocks],
        [[set(row) for row in layer.tolist()] for layer in experts],
    )  # fmt: skip


@torch.inference_mode()
def what_we_compute(monkeypatch, shape, weights, tokens: list[int], chunks: list[int]):
    """The same, of our model fed with ``tokens`` in ``chunks`` over shuffled pages."""
    blocks, experts = [], []

    def spy_blocks(scores, positions, block, topk):
        chosen = choose_blocks(scores, positions, block, topk)
        visible = scores.gather(-1, chosen) > -torch.inf
        rows = chosen.masked_fill(~visible, -1)[0].transpose(0, 1).tolist()
        blocks.append([[{b for b in head if b >= 0} for head in row] for row in rows])
        return chosen

    def spy_experts(*arguments):
        chosen, weight = route(*arguments)
        experts.append([set(row) for row in chosen.tolist()])
        return chosen, weight

    choose_blocks, route = reference.choose_blocks, reference.route
    monkeypatch.setattr(reference, "choose_blocks", spy_blocks)
    monkeypatch.setattr(reference, "route", spy_experts)
    model = ReferenceModel(shape, weights)
    pages = list(range(len(tokens) // shape.block_size + 1))
    random.Random(0).shuffle(pages)
    cache, hidden, start = KvCache.empty(shape, len(pages)), [], 0
    for size in chunks:
        batch = make_batch([Span(tokens[start : start + size], start, pages)], shape.block_size)
        hidden.append(model.forward(batch, cache)[0])
        start += size
    assert start == len(tokens)
    sparse = shape.num_layers - shape.dense_layers
    return (
        model.logits(torch.cat(hidden)),
        [list(chain(*blocks[layer::sparse])) for layer in range(sparse)],
        [list(chain(*experts[layer::sparse])) for layer in range(sparse)],
    )


@pytest.mark.parametrize("name", SHAPES)
def test_logits_blocks_and_experts_are_those_of_the_public_model(monkeypatch, name):
    shape = mini(**SHAPES[name])
    rng = random.Random(name)
    context = shape.block_size * (shape.topk_blocks + 5) + shape.block_size // 2
    tokens = [rng.randrange(shape.vocab_size) for _ in range(context)]
    public = public_model(shape, seed=len(name))
    logits, blocks, experts = what_they_compute(public, tokens)
    weights = our_weights(public, shape)
    for chunks in ([context], [3, shape.block_size, 1, context - shape.block_size - 4]):
        ours = what_we_compute(monkeypatch, shape, weights, tokens, chunks)
        assert (ours[0] - logits).abs().max() < 1e-4 * logits.abs().max()
        assert ours[1] == blocks
        assert ours[2] == experts
    last = blocks[-1][-1]
    assert all(len(head) == shape.topk_blocks for head in last)
    assert len(tokens) // shape.block_size > shape.topk_blocks
