"""EAGLE3's training form, and the chain of guesses that it is trained on.

Y. Li et al., EAGLE-3: Scaling up Inference Acceleration of Large Language Models via Training-Time
Test, 2025. The form is that of `infx.engine.spec.eagle`.
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, silu

from infx.engine.shapes import ModelConfig
from infx.engine.train.draft import Draft, at_rows, group_attention
from infx.engine.train.layer import Maker

__all__ = ["Eagle"]


class Eagle(Draft):
    """One decoder layer over [embedding of the token | feature of the position before]."""

    depth = 8

    def __init__(self, shape: ModelConfig, embed: Tensor, scale: Tensor, seed: int) -> None:
        make = Maker(seed)
        super().__init__(shape, embed, scale, make)
        hidden, heads = shape.hidden_size, shape.heads + 2 * shape.kv_heads
        self.embed_norm, self.feature_norm = make.zeros(hidden), make.zeros(hidden)
        self.qkv = make.linear(2 * hidden, heads * shape.head_dim)
        self.o = make.zeros(shape.heads * shape.head_dim, hidden)
        self.mlp_norm = make.zeros(hidden)
        self.up = make.linear(hidden, 2 * shape.dense_size)
        self.down = make.zeros(shape.dense_size, hidden)

    @staticmethod
    def layers_tapped(shape: ModelConfig) -> tuple[int, ...]:
        """See `Draft.layers_tapped`."""
        return shape.aux_layers

    def forward(self, tokens: Tensor, taps: Tensor, rows: Tensor) -> Tensor:
        """See `Draft.forward`: after the first guess the draft reads its own output, not the
        target's states, and its own keys beside those of the known positions."""
        length = tokens.shape[1]
        at = torch.arange(length, device=tokens.device)
        known = pad(self.features(taps), (0, 0, 1, 0))[:, :-1]
        q, k, v = self._inputs(tokens, known, at.expand_as(tokens))
        stream, q, seen = at_rows(known, rows), at_rows(q, rows), at <= rows[..., None]
        own: list[tuple[Tensor, Tensor]] = []
        guesses = []
        for ahead in range(self.depth):
            if ahead:
                place = (rows + ahead).clamp(max=length - 1)
                q, key, value = self._inputs(tokens.gather(1, place), stream, place)
                own.append((key, value))
            stream = self._after(stream, group_attention(q, k, v, seen, own))
            guesses.append(self.normed(stream, self.norm) @ self.head)
        return torch.stack(guesses)

    def _inputs(
        self, tokens: Tensor, features: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        s = self.shape
        known = self.normed(self.embed[tokens], self.embed_norm)
        x = torch.cat([known, self.normed(features, self.feature_norm)], -1)
        q, k, v = self.heads(x @ self.qkv).split([s.heads, s.kv_heads, s.kv_heads], -2)
        return self.turned(q, positions), self.turned(k, positions), v

    def _after(self, stream: Tensor, mixed: Tensor) -> Tensor:
        stream = stream + mixed @ self.o
        gate, up = (self.normed(stream, self.mlp_norm) @ self.up).chunk(2, -1)
        return stream + (silu(gate) * up) @ self.down
