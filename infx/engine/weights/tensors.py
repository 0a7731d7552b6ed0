"""Names and sizes of the tensors that the model and its drafts hold, by shape. Imports no torch.

Matrices are [in, out], ready for ``x @ w``. ``qkv`` holds q, k, the indexer's q and k where the
layer attends sparsely, then v; ``up`` holds gate and up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from infx.engine.refusal import RefusalError
from infx.engine.shapes import DSPARK_LAYERS, DSPARK_RANK, ModelConfig

__all__ = ["DRAFTS", "Sizes", "draft_sizes", "normed_heads", "target_sizes", "total_bytes"]

Sizes = dict[str, tuple[int, ...]]
DRAFTS = ("eagle3", "dspark")
FLOAT_BYTES = 4


def target_sizes(shape: ModelConfig) -> Sizes:
    """Return the size of each of the target's tensors, by infx's own name."""
    sizes: Sizes = {
        "embed": (shape.vocab_size, shape.hidden_size),
        "norm": (shape.hidden_size,),
        "head": (shape.hidden_size, shape.vocab_size),
    }
    for layer in range(shape.num_layers):
        sizes |= {f"layers.{layer}.{k}": size for k, size in _layer(shape, layer).items()}
    return sizes


def draft_sizes(shape: ModelConfig, method: str) -> Sizes:
    """Return the size of each tensor of a draft: ``eagle3`` or ``dspark``. Raises RefusalError."""
    if method == "eagle3":
        return _eagle3(shape)
    if method == "dspark":
        return _dspark(shape)
    raise RefusalError("unsupported-method", f"draft {method}: expected {' or '.join(DRAFTS)}")


def normed_heads(shape: ModelConfig, layer: int) -> dict[str, int]:
    """Return how many heads of each kind have a norm and are turned, in the order of ``qkv``."""
    heads = {"q": shape.heads, "k": shape.kv_heads}
    if shape.attends_sparsely(layer):
        heads |= {"index_q": shape.kv_heads, "index_k": 1}
    return heads


def total_bytes(sizes: Mapping[str, tuple[int, ...]]) -> int:
    """Return the bytes of float32 tensors of these sizes."""
    return FLOAT_BYTES * sum(math.prod(size) for size in sizes.values())


def _layer(shape: ModelConfig, layer: int) -> Sizes:
    hidden, dim = shape.hidden_size, shape.head_dim
    normed = sum(normed_heads(shape, layer).values())
    routed = shape.has_experts(layer)
    size = shape.shared_size if routed else shape.dense_size
    sizes: Sizes = {
        "attention_norm": (hidden,),
        "mlp_norm": (hidden,),
        "head_norm": (normed, dim),
        "qkv": (hidden, (normed + shape.kv_heads) * dim),
        "o": (shape.heads * dim, hidden),
        "up": (hidden, 2 * size),
        "down": (size, hidden),
    }
    return sizes | (_experts(shape) if routed else {})


def _experts(shape: ModelConfig) -> Sizes:
    hidden, size = shape.hidden_size, shape.expert_size
    return {
        "router": (hidden, shape.experts),
        "router_bias": (shape.experts,),
        "experts_up": (shape.experts, hidden, 2 * size),
        "experts_down": (shape.experts, size, hidden),
    }


def _eagle3(shape: ModelConfig) -> Sizes:
    """fc over the taps, one decoder layer over [embedding | feature], its own head."""
    hidden = shape.hidden_size
    return {
        "fc": (len(shape.aux_layers) * hidden, hidden),
        "embed_norm": (hidden,),
        "feature_norm": (hidden,),
        "mlp_norm": (hidden,),
        "norm": (hidden,),
        "head": (hidden, shape.vocab_size),
        **_decoder(shape, 2 * hidden),
    }


def _dspark(shape: ModelConfig) -> Sizes:
    """fc over the taps, the learned mask, decoder layers, the Markov head's two factors."""
    hidden, vocabulary = shape.hidden_size, shape.vocab_size
    sizes: Sizes = {
        "fc": (len(shape.block_layers) * hidden, hidden),
        "mask": (hidden,),
        "feature_norm": (hidden,),
        "markov_in": (vocabulary, DSPARK_RANK),
        "markov_out": (DSPARK_RANK, vocabulary),
        "norm": (hidden,),
        "head": (hidden, vocabulary),
    }
    layer = {"attention_norm": (hidden,), "mlp_norm": (hidden,), **_decoder(shape, hidden)}
    for number in range(DSPARK_LAYERS):
        sizes |= {f"layers.{number}.{name}": size for name, size in layer.items()}
    return sizes


def _decoder(shape: ModelConfig, wide: int) -> Sizes:
    hidden, heads = shape.hidden_size, shape.heads * shape.head_dim
    return {
        "qkv": (wide, heads + 2 * shape.kv_heads * shape.head_dim),
        "o": (heads, hidden),
        "up": (hidden, 2 * shape.dense_size),
        "down": (shape.dense_size, hidden),
    }
