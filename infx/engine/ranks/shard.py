"""Cuts the target's weights into those of one rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from infx.engine.ranks.division import kv_heads_of
from infx.engine.shapes import ModelConfig

__all__ = ["shard"]


def shard(
    weights: Mapping[str, Tensor], shape: ModelConfig, rank: int, ranks: int
) -> dict[str, Tensor]:
    """Return the tensors of ``rank``, for a model of `shape_of_rank`; ``shape`` is the whole one.

    Cut by output: ``qkv`` and ``head_norm`` (by heads), ``up`` and ``experts_up``; by input, so
    that the ranks' products are parts of a sum: ``o``, ``down`` and ``experts_down``. Ranks other
    than 0 get a head without columns; the rest is the same for all.
    """
    cut = _Cut(shape, rank, ranks)
    return {name: cut.of(name.rpartition(".")[2])(tensor) for name, tensor in weights.items()}


class _Cut:
    def __init__(self, shape: ModelConfig, rank: int, ranks: int) -> None:
        self._shape, self._rank, self._ranks = shape, rank, ranks
        share = shape.heads // ranks
        self._queries = range(rank * share, (rank + 1) * share)
        self._kv = kv_heads_of(shape, rank, ranks)

    def of(self, name: str) -> Callable[[Tensor], Tensor]:
        """Return what cuts a tensor of this ``name`` (its last word)."""
        cuts: dict[str, Callable[[Tensor], Tensor]] = {
            "qkv": self._projection,
            "head_norm": lambda norms: norms[self._normed(len(norms))],
            "o": lambda o: self._by_head(o.T, list(self._queries)).T,
            "up": self._halves,
            "experts_up": self._halves,
            "down": lambda down: self._part(down, -2),
            "experts_down": lambda down: self._part(down, -2),
            "head": lambda head: head if self._rank == 0 else head[:, :0],
        }
        return lambda tensor: cuts[name](tensor).contiguous() if name in cuts else tensor

    def _projection(self, qkv: Tensor) -> Tensor:
        """Heads stand as q, k, the indexer's q and k where there is one, then v."""
        heads = qkv.shape[1] // self._shape.head_dim
        normed = heads - self._shape.kv_heads
        values = [normed + number for number in self._kv]
        return self._by_head(qkv, [*self._normed(normed), *values])

    def _normed(self, heads: int) -> list[int]:
        """Return this rank's of the ``heads`` that are normed; all ranks have the index key."""
        keys = self._shape.heads
        own = [*self._queries, *(keys + number for number in self._kv)]
        index = keys + self._shape.kv_heads
        if heads == index:
            return own
        return [*own, *(index + number for number in self._kv), heads - 1]

    def _by_head(self, matrix: Tensor, heads: list[int]) -> Tensor:
        """Return the columns of ``heads``."""
        dim = self._shape.head_dim
        columns = torch.tensor(heads)[:, None] * dim + torch.arange(dim)
        return matrix[:, columns.flatten()]

    def _halves(self, up: Tensor) -> Tensor:
        """The columns are [gate | up]: a part of each."""
        return torch.cat([self._part(half, -1) for half in up.chunk(2, dim=-1)], dim=-1)

    def _part(self, tensor: Tensor, dim: int) -> Tensor:
        return tensor.chunk(self._ranks, dim=dim)[self._rank]
