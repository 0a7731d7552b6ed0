"""Random weights: every tensor from its own seed, so that adding one changes no other."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

from infx.engine.shapes import ModelConfig
from infx.engine.weights.tensors import draft_sizes, normed_heads, target_sizes

__all__ = ["random_draft", "random_target"]

# Random weights write readable text: only printable ASCII bytes have a non-zero row in the head. A
# stray first byte of a UTF-8 sequence would hold text back for a step, and clients that wait for
# text would take that for time to the first token.
READABLE = range(32, 127)
# Matrices whose columns are tokens, and how large their logits are.
READABLE_GAIN = {"head": 4.0, "markov_out": 1.0}
# Tables whose rows are looked up, not multiplied: no fan-in to divide by.
LOOKED_UP = ("embed", "mask", "markov_in")


def random_target(shape: ModelConfig, seed: int) -> dict[str, Tensor]:
    """Return the target's float32 tensors by name, drawn from (seed, name)."""
    make = _Maker(f"{seed}/target")
    weights = {}
    for name, size in target_sizes(shape).items():
        *at, kind = name.split(".")
        if kind == "head_norm":
            weights[name] = _head_norms(make, shape, int(at[-1]))
        elif kind in ("up", "down"):
            part = "shared" if shape.has_experts(int(at[-1])) else "mlp"
            weights[name] = make.linear(".".join([*at, part, kind]), *size)
        else:
            weights[name] = make.tensor(name, *size)
    return weights


def random_draft(shape: ModelConfig, method: str, seed: int) -> dict[str, Tensor]:
    """Return a draft's float32 tensors by name, drawn from (seed, method, name)."""
    make = _Maker(f"{seed}/{method}")
    return {name: make.tensor(name, *size) for name, size in draft_sizes(shape, method).items()}


def _head_norms(make: _Maker, shape: ModelConfig, layer: int) -> Tensor:
    """Return a norm weight a head [heads, dim]; heads of a kind share theirs."""
    return torch.cat(
        [
            make.norm(f"layers.{layer}.{kind}_norm", shape.head_dim).expand(count, -1)
            for kind, count in normed_heads(shape, layer).items()
        ]
    )


class _Maker:
    """Tensors drawn from (root, name)."""

    def __init__(self, root: str) -> None:
        self._root = root

    def tensor(self, name: str, *size: int) -> Tensor:
        """Return the tensor of ``name``, spread as its last word asks."""
        kind = name.rpartition(".")[2]
        if kind in LOOKED_UP:
            return self.normal(name, *size)
        if kind == "router_bias":
            return 0.02 * self.normal(name, *size)
        if kind.endswith("norm"):
            return self.norm(name, *size)
        if kind in READABLE_GAIN:
            return READABLE_GAIN[kind] * self._readable(name, *size)
        return self.linear(name, *size)

    def normal(self, name: str, *size: int) -> Tensor:
        digest = hashlib.blake2b(f"{self._root}/{name}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)
        return torch.randn(*size, generator=generator)

    def linear(self, name: str, *size: int) -> Tensor:
        return self.normal(name, *size) / math.sqrt(size[-2])

    def norm(self, name: str, size: int) -> Tensor:
        return 0.1 * self.normal(name, size)

    def _readable(self, name: str, inner: int, vocabulary: int) -> Tensor:
        # A vocabulary without readable bytes, as tests have, is drawn whole.
        shown = range(vocabulary)[READABLE.start : READABLE.stop] or range(vocabulary)
        columns = torch.zeros(inner, vocabulary)
        columns[:, shown.start : shown.stop] = self.linear(name, inner, len(shown))
        return columns
