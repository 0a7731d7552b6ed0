"""Drafts computed the long way: float64, one at a time, no cache, no batch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from infx.engine.shapes import ModelConfig


class Dense:
    """What both drafts share."""

    def __init__(self, shape: ModelConfig, weights: Mapping[str, Tensor], embed: Tensor) -> None:
        self.shape, self.embed = shape, embed.double()
        self.w = {name: tensor.double() for name, tensor in weights.items()}

    def norm(self, x: Tensor, name: str) -> Tensor:
        mean = x.pow(2).mean(-1, keepdim=True)
        return x / (mean + self.shape.rms_norm_eps).sqrt() * (1 + self.w[name])

    def heads(self, x: Tensor, at: str, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries, turned keys and values [heads, n, dim] of rows from position start."""
        s = self.shape
        flat = (x @ self.w[at + "qkv"]).view(len(x), -1, s.head_dim).transpose(0, 1)
        q, k, v = flat.split([s.heads, s.kv_heads, s.kv_heads])
        return self.turn(q, start), self.turn(k, start), v

    def turn(self, heads: Tensor, start: int) -> Tensor:
        """Rotary over the whole head: pairs (i, i + half) as complex numbers."""
        half = heads.shape[2] // 2
        positions = start + torch.arange(heads.shape[1]).double()
        angles = positions[:, None] * self.shape.rope_theta ** -(torch.arange(half).double() / half)
        pairs = torch.complex(heads[..., :half], heads[..., half:])
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([turned.real, turned.imag], dim=2)

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Mixed values [n, heads · dim]: every row sees every key."""
        group, mixed = self.shape.heads // self.shape.kv_heads, []
        for head, q in enumerate(queries):
            scores = q @ keys[head // group].T / math.sqrt(self.shape.head_dim)
            mixed.append(scores.softmax(1) @ values[head // group])
        return torch.cat(mixed, dim=1)

    def mlp(self, x: Tensor, at: str) -> Tensor:
        gate, up = (x @ self.w[at + "up"]).chunk(2, dim=1)
        return (gate / (1 + (-gate).exp()) * up) @ self.w[at + "down"]


class DenseBlock(Dense):
    """DSpark's formulas over one whole sequence."""

    window = 1024

    def logits(self, aux: Tensor, token: int, k: int) -> Tensor:
        """Logits [k, vocabulary] before the Markov head; ``aux`` [p, taps] are positions below p,
        ``token`` stands at p."""
        p, w = len(aux), self.w
        first = max(0, p - self.window)
        known = self.norm(aux[first:].double() @ w["fc"], "feature_norm")
        rows = torch.cat([self.embed[token][None], w["mask"].expand(k, -1)])
        for layer in range(2):
            at = f"layers.{layer}."
            _, context, context_values = self.heads(known, at, first)
            queries, keys, values = self.heads(self.norm(rows, at + "attention_norm"), at, p)
            keys = torch.cat([context, keys], dim=1)
            values = torch.cat([context_values, values], dim=1)
            rows = rows + self.attend(queries, keys, values) @ w[at + "o"]
            rows = rows + self.mlp(self.norm(rows, at + "mlp_norm"), at)
        return self.norm(rows[1:], "norm") @ w["head"]

    def choose(self, logits: Tensor, token: int, ids: int) -> list[int]:
        """The drafts: each the best below ``ids`` given the one before."""
        chosen = [token]
        for row in logits:
            row = row + self.w["markov_in"][chosen[-1]] @ self.w["markov_out"]
            chosen.append(int(row[:ids].argmax()))
        return chosen[1:]


class DenseEagle(Dense):
    """EAGLE3's formulas over one whole sequence."""

    def choose(self, aux: Tensor, tokens: list[int], k: int, ids: int) -> list[int]:
        """The k drafts after ``tokens``; ``aux`` [len(tokens) - 1, taps] of all but the last."""
        at, chosen = len(tokens) - 1, []
        features = torch.cat(
            [torch.zeros(1, self.shape.hidden_size).double(), aux.double() @ self.w["fc"]]
        )
        queries, keys, values = self.heads(self.inputs(tokens, features), "", 0)
        queries, stream = queries[:, -1:], features[-1:]
        for depth in range(1, k + 1):
            stream = stream + self.attend(queries, keys, values) @ self.w["o"]
            stream = stream + self.mlp(self.norm(stream, "mlp_norm"), "")
            logits = self.norm(stream, "norm") @ self.w["head"]
            chosen.append(int(logits[0, :ids].argmax()))
            queries, key, value = self.heads(self.inputs(chosen[-1:], stream), "", at + depth)
            keys, values = torch.cat([keys, key], dim=1), torch.cat([values, value], dim=1)
        return chosen

    def inputs(self, tokens: list[int], features: Tensor) -> Tensor:
        embedded = self.norm(self.embed[tokens], "embed_norm")
        return torch.cat([embedded, self.norm(features, "feature_norm")], dim=1)
