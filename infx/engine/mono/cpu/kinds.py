"""The engine's models as shapes and kinds of mono layers."""

from __future__ import annotations

from infx.engine.mono.shape import Kind, LayerShape
from infx.engine.shapes import ModelConfig

__all__ = ["kind_of", "kinds_of", "layer_shape"]


def layer_shape(model: ModelConfig) -> LayerShape:
    """Return the shape of the model's layers, which reach as far as its drafts' rows.

    Raises ValueError for one that mono does not do.
    """
    if model.shared_size != model.expert_size:
        raise ValueError(
            f"shared_size {model.shared_size} of {model.name}: mono reads the shared expert as one"
            f" more expert, of {model.expert_size}"
        )
    return LayerShape(
        hidden=model.hidden_size,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        rotary_dim=model.rotary_dim,
        block=model.block_size,
        topk_blocks=model.topk_blocks,
        experts=model.experts,
        experts_per_token=model.experts_per_token,
        expert_size=model.expert_size,
        dense_size=model.dense_size,
        reach=model.farthest,
        ranks=model.simulated_ranks,
        rope_theta=model.rope_theta,
        norm_eps=model.rms_norm_eps,
        routed_scale=model.routed_scaling_factor,
        swiglu_alpha=model.swiglu_alpha,
        swiglu_limit=model.swiglu_limit,
    )


def kind_of(model: ModelConfig, layer: int) -> Kind:
    """Return the kind of a layer. Raises ValueError for experts under full attention."""
    sparse = model.attends_sparsely(layer)
    if model.has_experts(layer) and not sparse:
        raise ValueError(f"layer {layer} of {model.name} has experts and full attention")
    if model.has_experts(layer):
        return "sparse"
    return "sparse_dense" if sparse else "dense"


def kinds_of(model: ModelConfig) -> tuple[Kind, ...]:
    """Return the kind of each layer. Raises ValueError as `kind_of`."""
    return tuple(kind_of(model, layer) for layer in range(model.num_layers))
