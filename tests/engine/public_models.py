"""Tiny MiniMax-M3 models of `transformers` with random weights."""

from __future__ import annotations

import torch

from infx.engine.shapes import ModelConfig, mini
from infx.engine.weights.public_config import public_config

TINY = {
    "hidden_size": 48, "num_layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 16, "rotary_dim": 8,
    "block_size": 4, "topk_blocks": 3, "experts": 8, "experts_per_token": 2, "expert_size": 24,
    "shared_size": 32, "dense_size": 40, "vocab_size": 97, "aux_layers": (0, 1, 2),
    "block_layers": (0, 1, 2),
}  # fmt: skip
SHAPES = {
    "tiny": TINY,
    "whole-rotary": TINY
    | {"rotary_dim": 16, "heads": 6, "kv_heads": 3, "full_layers": 2, "dense_layers": 2},
    "no-dense-layer": TINY
    | {"full_layers": 0, "dense_layers": 0, "topk_blocks": 1, "experts_per_token": 4},
    "low-limit": TINY | {"kv_heads": 1, "block_size": 8, "topk_blocks": 2, "swiglu_limit": 0.25},
    "m3.1": TINY | {"full_layers": 0, "dense_layers": 2},
    "m3.1-other-constants": TINY
    | {"full_layers": 0, "rope_theta": 1e4, "routed_scaling_factor": 1.5, "swiglu_alpha": 1.1},
    "full-with-experts": TINY | {"full_layers": 2, "dense_layers": 0},
    "mini": {},
    "mini_3_1": {"full_layers": 0},
}
VISION = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "image_size": 28, "patch_size": 14,
}  # fmt: skip


def shape_named(name: str) -> ModelConfig:
    return mini(**SHAPES[name])


def public_text_model(shape: ModelConfig, seed: int):
    """The text model at ``shape``, every tensor random, norms and biases too."""
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as public

    return _random(public.MiniMaxM3VLForCausalLM(_text_config(shape)), seed)


def public_whole_model(shape: ModelConfig, seed: int):
    """The same inside the model with vision."""
    from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as public
    from transformers.models.minimax_m3_vl.configuration_minimax_m3_vl import MiniMaxM3VLConfig

    text = _text_config(shape).to_dict()
    config = MiniMaxM3VLConfig(
        text_config=text,
        vision_config=VISION,
        projector_hidden_size=16,
        image_token_index=shape.vocab_size - 1,
        video_token_index=shape.vocab_size - 2,
        attn_implementation="eager",
    )
    return _random(public.MiniMaxM3SparseForConditionalGeneration(config), seed)


def _text_config(shape: ModelConfig):
    from transformers.models.minimax_m3_vl.configuration_minimax_m3_vl import (
        MiniMaxM3VLTextConfig,
    )

    return MiniMaxM3VLTextConfig(
        **public_config(shape)["text_config"],
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
        experts_implementation="eager",
    )


def _random(model, seed: int):
    model, generator = model.float().eval(), torch.Generator().manual_seed(seed)
    for tensor in model.state_dict().values():
        tensor.normal_(generator=generator).mul_(
            0.3 if tensor.ndim == 1 else tensor.shape[-1] ** -0.5
        )
    return model
