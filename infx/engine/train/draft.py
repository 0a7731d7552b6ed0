"""What the training forms of both drafts share."""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from infx.engine.model.layers import turn_tables
from infx.engine.shapes import ModelConfig
from infx.engine.train.formulas import norm, rotate
from infx.engine.train.layer import Maker

__all__ = ["Draft", "at_rows", "group_attention"]

KnownKeys = tuple[Tensor, Tensor]


class Draft(nn.Module, ABC):
    """A draft of a target: ``fc`` over its tapped states, a norm and a head of its own.

    Tapped states differ tenfold in size, so training divides them by ``scale`` [taps · hidden];
    `exported` folds it into ``fc``.
    """

    depth: int
    embed: Tensor
    scale: Tensor
    cos: Tensor
    sin: Tensor

    def __init__(self, shape: ModelConfig, embed: Tensor, scale: Tensor, make: Maker) -> None:
        super().__init__()
        self.tapped = self.layers_tapped(shape)
        self.shape, hidden, dim = shape, shape.hidden_size, shape.head_dim
        self.fc = make.linear(len(self.tapped) * hidden, hidden)
        self.norm, self.head = make.zeros(hidden), make.normal(hidden, shape.vocab_size, std=0.01)
        tables = turn_tables(dim, dim, shape.rope_theta, shape.farthest)
        fixed = {"embed": embed.detach().clone(), "scale": scale}
        for name, table in {**fixed, "cos": tables[0], "sin": tables[1]}.items():
            self.register_buffer(name, table, persistent=False)

    @staticmethod
    @abstractmethod
    def layers_tapped(shape: ModelConfig) -> tuple[int, ...]:
        """Return the target's layers whose states it reads."""

    @abstractmethod
    def forward(self, tokens: Tensor, taps: Tensor, rows: Tensor) -> Tensor:
        """Return logits [depth, b, r, vocabulary]: guess d of the token d + 1 after the base
        positions ``rows`` [b, r], of sequences ``tokens`` [b, t] with states ``taps``."""

    def exported(self) -> dict[str, Tensor]:
        """Return the weights by the names of `infx.engine.weights`, bfloat16, as shipped."""
        named = {name: p.detach().float().cpu() for name, p in self.named_parameters()}
        named["fc"] = named["fc"] / self.scale.float().cpu()[:, None]
        return {name: tensor.bfloat16().contiguous() for name, tensor in named.items()}

    @torch.no_grad()
    def load(self, weights: dict[str, Tensor]) -> None:
        """Take what `exported` gave."""
        for name, parameter in self.named_parameters():
            parameter.copy_(weights[name].float())
        self.scale.fill_(1.0)

    def features(self, taps: Tensor) -> Tensor:
        """Return fc of the target's states [..., hidden]."""
        return (taps / self.scale) @ self.fc

    def normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return the model's norm of ``x``."""
        return norm(x, weight, self.shape.rms_norm_eps)

    def heads(self, x: Tensor) -> Tensor:
        """Return ``x`` [..., heads, dim]."""
        split: Tensor = x.unflatten(-1, (-1, self.shape.head_dim))
        return split

    def turned(self, x: Tensor, positions: Tensor) -> Tensor:
        """Return ``x`` [..., heads, dim] turned over the whole head, in its own dtype."""
        cos, sin = self.cos[positions][..., None, :], self.sin[positions][..., None, :]
        return rotate(x, cos, sin, self.shape.head_dim).to(x.dtype)


def at_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Return x[b, rows[b]] [b, r, …] of ``x`` [b, t, …]."""
    index = rows.view(*rows.shape, *[1] * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)


def group_attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, own: list[KnownKeys]) -> Tensor:
    """Return [b, r, heads · dim] of q [b, r, heads, dim] over shared and own keys.

    Shared: k, v [b, t, groups, dim] where ``seen`` [b, r, t]; own: pairs of [b, r, groups, dim],
    one key a row.
    """
    length, size = k.shape[1], q.shape[-1] ** -0.5
    grouped = q.unflatten(2, (k.shape[2], -1))
    scores = torch.einsum("brgpd,btgd->bgprt", grouped, k).float() * size
    scores = scores.masked_fill(~seen[:, None, None], -torch.inf)
    mine = [
        torch.einsum("brgpd,brgd->bgpr", grouped, key)[..., None].float() * size for key, _ in own
    ]
    share = torch.cat([scores, *mine], -1).softmax(-1).to(v.dtype)
    out = torch.einsum("bgprt,btgd->brgpd", share[..., :length], v)
    for i, (_, value) in enumerate(own, length):
        out = out + share[..., i].permute(0, 3, 1, 2)[..., None] * value[:, :, :, None]
    return out.flatten(2)
