"""One layer of the training form: its parameters, and its two halves over whole sequences.

Projections have parameters of their own (infx's engine holds q, k, v and the indexer's in one), so
that the optimiser treats each as one matrix.
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from infx.engine.shapes import ModelConfig
from infx.engine.train.experts import mix_all, mix_dealt, route
from infx.engine.train.formulas import count, form, norm, rotate, swiglu
from infx.engine.train.rounding import experts_rounded

__all__ = ["Heads", "Layer", "Maker", "Mode"]


@dataclass(frozen=True, slots=True)
class Mode:
    """How a pass computes.

    ``sparse``: attention over the indexer's blocks, else full. ``rounded``: experts as MXFP4 stores
    them. ``held``: each how-manieth sequence sees k, v and index keys as an MXFP4 cache gives them
    (0: none). ``fast``: compiled formulas, flex attention and dealt experts, under CUDA's autocast
    to bfloat16; else plain float32.
    """

    sparse: bool = True
    rounded: bool = False
    held: int = 0
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads of rows [..., heads, dim], normed and turned but ``v``; no index in a full layer."""

    q: Tensor
    k: Tensor
    v: Tensor
    index_q: Tensor | None
    index_k: Tensor | None


class Maker:
    """Draws parameters one after another from one seed."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *size: int, std: float) -> nn.Parameter:
        """Return a parameter of normal values."""
        return nn.Parameter(torch.randn(*size, generator=self._generator) * std)

    def linear(self, *size: int) -> nn.Parameter:
        """Return a matrix [..., in, out] that keeps the size of what it multiplies."""
        return self.normal(*size, std=size[-2] ** -0.5)

    def zeros(self, *size: int) -> nn.Parameter:
        """Return zeros: a norm's weight, or a matrix whose output starts at nothing."""
        return nn.Parameter(torch.zeros(*size))


class Layer(nn.Module):
    """Parameters [in, out]: attention_norm, q, k, v, o, q_norm, k_norm, index_q, index_k,
    index_q_norm, index_k_norm (sparse layers), mlp_norm, up, down, router, experts_up,
    experts_down (layers with experts) and the buffer router_bias, which training moves by load."""

    index_q: nn.Parameter
    index_k: nn.Parameter
    index_q_norm: nn.Parameter
    index_k_norm: nn.Parameter
    router: nn.Parameter
    experts_up: nn.Parameter
    experts_down: nn.Parameter
    router_bias: Tensor

    def __init__(self, shape: ModelConfig, number: int, make: Maker) -> None:
        super().__init__()
        self.shape = shape
        self.sparse = shape.attends_sparsely(number)
        self.routed = shape.has_experts(number)
        self._make_attention(make)
        self._make_mlp(make)

    def _make_attention(self, make: Maker) -> None:
        s, hidden, dim = self.shape, self.shape.hidden_size, self.shape.head_dim
        self.attention_norm = make.zeros(hidden)
        self.q = make.linear(hidden, s.heads * dim)
        self.k = make.linear(hidden, s.kv_heads * dim)
        self.v = make.linear(hidden, s.kv_heads * dim)
        self.o = make.zeros(s.heads * dim, hidden)
        self.q_norm, self.k_norm = make.zeros(dim), make.zeros(dim)
        if self.sparse:
            self.index_q = make.linear(hidden, s.kv_heads * dim)
            self.index_k = make.linear(hidden, dim)
            self.index_q_norm, self.index_k_norm = make.zeros(dim), make.zeros(dim)

    def _make_mlp(self, make: Maker) -> None:
        s, hidden = self.shape, self.shape.hidden_size
        size = s.shared_size if self.routed else s.dense_size
        self.mlp_norm = make.zeros(hidden)
        self.up, self.down = make.linear(hidden, 2 * size), make.zeros(size, hidden)
        if self.routed:
            self.router = make.linear(hidden, s.experts)
            self.experts_up = make.linear(s.experts, hidden, 2 * s.expert_size)
            self.experts_down = make.zeros(s.experts, s.expert_size, hidden)
            self.register_buffer("router_bias", torch.zeros(s.experts))

    def project(self, stream: Tensor, cos: Tensor, sin: Tensor, fast: bool) -> Heads:
        """Return the heads of ``stream`` [..., hidden]; the indexer's see no gradient beyond
        themselves."""
        s = self.shape
        weights = [self.attention_norm, self.q, self.k, self.v, self.q_norm, self.k_norm]
        if self.sparse:
            weights += [self.index_q, self.index_k, self.index_q_norm, self.index_k_norm]
        run = form(_project, fast)
        return Heads(*run(stream, cos, sin, weights, s.head_dim, s.rotary_dim, s.rms_norm_eps))

    def mlp(self, stream: Tensor, mode: Mode) -> tuple[Tensor, Tensor | None]:
        """Return the MLP's output for ``stream`` [n, hidden], and rows of each expert."""
        s = self.shape
        x = form(norm, mode.fast)(stream, self.mlp_norm, s.rms_norm_eps)
        inner = form(swiglu, mode.fast)(x @ self.up, s.swiglu_alpha, s.swiglu_limit)
        dense = inner @ self.down
        if not self.routed:
            return dense, None
        mixed, load = self._experts(x, mode)
        return dense + mixed, load

    def _experts(self, x: Tensor, mode: Mode) -> tuple[Tensor, Tensor]:
        s = self.shape
        with torch.autocast(x.device.type, enabled=False):
            chosen, weight = route(x, self.router, self.router_bias, s)
        load = form(count, mode.fast)(chosen, s.experts)
        up, down = self.experts_up, self.experts_down
        if mode.rounded:
            up, down = (experts_rounded(w, mode.fast) for w in (up, down))  # type: ignore[assignment]
        if mode.fast:
            return mix_dealt(x, chosen, weight, up, down, s, load), load
        return mix_all(x, chosen, weight, up, down, s), load

    @torch.no_grad()
    def balance(self, load: Tensor, rate: Tensor) -> None:
        """Move the router's bias by ``rate`` towards experts below the mean load.

        L. Wang et al., Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts, 2024.
        """
        load = load.float()
        self.router_bias += rate * (load.mean() - load).sign()
        self.router_bias -= self.router_bias.mean()


def _project(
    stream: Tensor, cos: Tensor, sin: Tensor, w: Sequence[Tensor], dim: int, size: int, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    x = norm(stream, w[0], eps)
    q, k, v = _split(x, w[1:4])

    def heads(flat: Tensor, weight: Tensor) -> Tensor:
        return rotate(norm(flat.unflatten(-1, (-1, dim)), weight, eps), cos, sin, size)

    q, k, v = heads(q, w[4]), heads(k, w[5]), v.unflatten(-1, (-1, dim))
    if len(w) == 6:
        return q, k, v, None, None
    index_q, index_k = _split(x.detach(), w[6:8])
    return q, k, v, heads(index_q, w[8]), heads(index_k, w[9])


def _split(x: Tensor, matrices: Sequence[Tensor]) -> list[Tensor]:
    joined = x @ torch.cat(list(matrices), 1)
    return list(joined.split([m.shape[1] for m in matrices], -1))
