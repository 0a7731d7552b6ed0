"""Random weights: every tensor from its own seed, so that adding one changes no other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import torch
from torch import Tensor

from infx.engine.shapes import ModelConfig

__all__ = ["draft_weights", "target_weights"]

Weights = Mapping[str, Tensor]

# Random weights write readable text: only printable ASCII bytes have a non-zero row in the head. A
# stray first byte of a UTF-8 sequence would hold text back for a step, and clients that wait for
# text would take that for time to the first token.
READABLE = range(32, 127)


def target_weights(shape: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Return the target's float32 tensors by name; matrices are [in, out], ready for ``x @ w``."""
    make = _Maker(seed, "target")
    weights = {
        "embed": make.normal("embed", shape.vocab_size, shape.hidden_size),
        "norm": make.norm("norm", shape.hidden_size),
        "head": _head(make, shape),
    }
    for layer in range(shape.num_layers):
        for name, tensor in _layer(make, shape, layer).items():
            weights[f"layers.{layer}.{name}"] = tensor
    return weights


def draft_weights(shape: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Return the EAGLE3 draft's tensors: fc 3H -> H, one decoder layer over 2H, its own head."""
    make, hidden = _Maker(seed, "eagle3"), shape.hidden_size
    q_size, kv_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    return {
        "fc": make.linear("fc", 3 * hidden, hidden),
        "embed_norm": make.norm("embed_norm", hidden),
        "feature_norm": make.norm("feature_norm", hidden),
        "qkv": make.linear("qkv", 2 * hidden, q_size + 2 * kv_size),
        "o": make.linear("o", q_size, hidden),
        "mlp_norm": make.norm("mlp_norm", hidden),
        "up": make.linear("up", hidden, 2 * shape.dense_size),
        "down": make.linear("down", shape.dense_size, hidden),
        "norm": make.norm("norm", hidden),
        "head": _head(make, shape),
    }


def _layer(make: _Maker, shape: ModelConfig, layer: int) -> dict[str, Tensor]:
    at, hidden = f"layers.{layer}.", shape.hidden_size
    sparse = layer >= shape.dense_layers
    normed = shape.heads + shape.kv_heads + (shape.kv_heads + 1 if sparse else 0)
    tensors = {
        "attention_norm": make.norm(at + "attention_norm", hidden),
        "mlp_norm": make.norm(at + "mlp_norm", hidden),
        "head_norm": _head_norms(make, shape, at, sparse),
        "qkv": make.linear(at + "qkv", hidden, (normed + shape.kv_heads) * shape.head_dim),
        "o": make.linear(at + "o", shape.heads * shape.head_dim, hidden),
    }
    more = _sparse(make, shape, at) if sparse else _mlp(make, at + "mlp", hidden, shape.dense_size)
    return tensors | more


def _head_norms(make: _Maker, shape: ModelConfig, at: str, sparse: bool) -> Tensor:
    """Return a norm weight a head [heads, dim]; heads of a kind share theirs."""
    kinds = [("q_norm", shape.heads), ("k_norm", shape.kv_heads)]
    if sparse:
        kinds += [("index_q_norm", shape.kv_heads), ("index_k_norm", 1)]
    return torch.cat([make.norm(at + name, shape.head_dim).expand(n, -1) for name, n in kinds])


def _sparse(make: _Maker, shape: ModelConfig, at: str) -> dict[str, Tensor]:
    hidden, size = shape.hidden_size, shape.expert_size
    return {
        "router": make.linear(at + "router", hidden, shape.experts),
        "router_bias": 0.02 * make.normal(at + "router_bias", shape.experts),
        "experts_up": make.linear(at + "experts_up", shape.experts, hidden, 2 * size),
        "experts_down": make.linear(at + "experts_down", shape.experts, size, hidden),
        **_mlp(make, at + "shared", hidden, shape.shared_size),
    }


def _mlp(make: _Maker, at: str, hidden: int, size: int) -> dict[str, Tensor]:
    return {
        "up": make.linear(at + ".up", hidden, 2 * size),
        "down": make.linear(at + ".down", size, hidden),
    }


def _head(make: _Maker, shape: ModelConfig) -> Tensor:
    head = torch.zeros(shape.hidden_size, shape.vocab_size)
    columns = slice(READABLE.start, READABLE.stop)
    head[:, columns] = 4 * make.linear("head", shape.hidden_size, len(READABLE))
    return head


class _Maker:
    """Tensors drawn from (seed, part, name)."""

    def __init__(self, seed: int, part: str) -> None:
        self._root = f"{seed}/{part}"

    def normal(self, name: str, *size: int) -> Tensor:
        digest = hashlib.blake2b(f"{self._root}/{name}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        return torch.randn(*size, generator=generator)

    def linear(self, name: str, *size: int) -> Tensor:
        return self.normal(name, *size) / math.sqrt(size[-2])

    def norm(self, name: str, size: int) -> Tensor:
        return 0.1 * self.normal(name, size)
