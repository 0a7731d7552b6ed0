"""Greedy decoding of many prompts at once by the training form, with a cache of plain tensors."""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from infx.engine.train.conversations import END, EOS, PAD
from infx.engine.train.layer import Heads, Layer, Mode
from infx.engine.train.target import Target, held

__all__ = ["decode"]

SEQUENCES = 32
"""Prompts read in one pass."""

LOOK_EVERY = 16
"""Tokens between two looks at whether every text has ended: each look waits for the device."""


@torch.no_grad()
def decode(
    target: Target, prompts: Sequence[Sequence[int]], most: int, mode: Mode
) -> list[list[int]]:
    """Return up to ``most`` ids after each prompt, the one that ends it (EOS, END) the last."""
    device = target.embed.device
    cache = _Cache(target, len(prompts), max(map(len, prompts)) + most + 1, mode)
    at = torch.tensor([len(prompt) for prompt in prompts], device=device)
    token = cache.read(prompts)
    out = torch.full((len(prompts), most), PAD, device=device)
    ended = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    for place in range(most):
        token = torch.where(ended, PAD, token)
        out[:, place] = token
        ended |= (token == END) | (token == EOS)
        if place % LOOK_EVERY == LOOK_EVERY - 1 and bool(ended.all()):
            break
        token = cache.next(token, at)
        at = at + 1
    return [[i for i in row if i != PAD] for row in out.tolist()]


class _Cache:
    """Keys, values and index keys of ``count`` sequences [layers, count, length, …]."""

    def __init__(self, target: Target, count: int, length: int, mode: Mode) -> None:
        shape, device = target.shape, target.embed.device
        self._target, self._mode = target, mode
        self._length = -(-length // shape.block_size) * shape.block_size
        size = (shape.num_layers, count, self._length)
        self._k = torch.zeros(*size, shape.kv_heads, shape.head_dim, device=device)
        self._v = torch.zeros_like(self._k)
        self._index = torch.zeros(*size, shape.head_dim, device=device)

    def read(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Fill the cache and return the next token of each prompt."""
        parts = range(0, len(prompts), SEQUENCES)
        return torch.cat([self._read(prompts[i : i + SEQUENCES], i) for i in parts])

    def _read(self, prompts: Sequence[Sequence[int]], first: int) -> Tensor:
        block, device = self._target.shape.block_size, self._k.device
        width = -(-max(map(len, prompts)) // block) * block
        padded = [[*prompt, *[PAD] * (width - len(prompt))] for prompt in prompts]
        rows = slice(first, first + len(prompts))

        def keep(n: int, heads: Heads) -> None:
            self._k[n, rows, :width], self._v[n, rows, :width] = heads.k, heads.v
            if heads.index_k is not None:
                self._index[n, rows, :width] = heads.index_k[:, :, 0]

        stream = self._target(torch.tensor(padded, device=device), self._mode, keep=keep).stream
        ends = torch.tensor([len(prompt) - 1 for prompt in prompts], device=device)
        last = stream[torch.arange(len(prompts), device=device), ends]
        return self._target.logits(last).argmax(-1)

    def next(self, token: Tensor, at: Tensor) -> Tensor:
        """Take ``token`` [n] at positions ``at`` [n] in; return the tokens after."""
        target, mode = self._target, self._mode
        cos, sin = (table[at][:, None, None] for table in (target.cos, target.sin))
        stream = target.embed[token][:, None]
        for n, layer in target.numbered:
            heads = layer.project(stream, cos, sin, fast=False)
            heads = held(heads, mode) if mode.held else heads
            stream = stream + (self._attend(n, layer, heads, at) @ layer.o)[:, None]
            stream = stream + layer.mlp(stream[:, 0], mode)[0][:, None]
        return target.logits(stream[:, 0]).argmax(-1)

    def _attend(self, n: int, layer: Layer, heads: Heads, at: Tensor) -> Tensor:
        shape, rows = self._target.shape, torch.arange(len(at), device=at.device)
        self._k[n, rows, at], self._v[n, rows, at] = heads.k[:, 0], heads.v[:, 0]
        hidden = (torch.arange(self._length, device=at.device) > at[:, None])[:, None]
        if heads.index_q is not None and heads.index_k is not None:
            self._index[n, rows, at] = heads.index_k[:, 0, 0]
            if self._mode.sparse:
                hidden = hidden | ~self._chosen(n, heads.index_q[:, 0], hidden, at)
        count = len(at)
        q: Tensor = heads.q[:, 0].unflatten(1, (shape.kv_heads, -1))
        scores = q @ self._k[n, :count].permute(0, 2, 3, 1) * shape.head_dim**-0.5
        share = scores.masked_fill(hidden[:, :, None], -torch.inf).softmax(-1)
        mixed: Tensor = share @ self._v[n, :count].transpose(1, 2)
        return mixed.flatten(1)

    def _chosen(self, n: int, index_q: Tensor, hidden: Tensor, at: Tensor) -> Tensor:
        """Return bool [n, groups, length]: tokens in the chosen blocks."""
        block, topk = self._target.shape.block_size, self._target.shape.topk_blocks
        scores = index_q @ self._index[n, : len(at)].transpose(1, 2)
        scores = scores.masked_fill(hidden, -torch.inf)
        scores = torch.unflatten(scores, -1, (-1, block)).amax(-1)
        own = (at // block)[:, None, None].expand(-1, scores.shape[1], 1)
        best = scores.scatter(-1, own, torch.inf).topk(min(topk, scores.shape[-1]), -1)
        none = torch.zeros_like(scores, dtype=torch.bool)
        return none.scatter(-1, best.indices, best.values > -torch.inf).repeat_interleave(block, -1)
