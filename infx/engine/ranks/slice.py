"""One rank's part of the target: its weights, its heads' cache, its threads."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor

from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.ranks.division import shape_of_rank
from infx.engine.ranks.shard import shard
from infx.engine.weights import target_weights

__all__ = ["draft_cache", "load_slice", "threads_of_rank"]


def load_slice(
    config: EngineConfig, rank: int, reduce: Callable[[Tensor], Tensor]
) -> tuple[ReferenceModel, KvCache]:
    """Return the model of ``rank`` and the cache of its kv heads, with no layer for a draft.

    Sets this process's torch threads.
    """
    torch.set_num_threads(threads_of_rank(config))
    shape, ranks = config.shape, config.tp
    weights = shard(target_weights(shape, config.weights, config.expert_dtype), shape, rank, ranks)
    small = shape_of_rank(shape, ranks)
    cache = KvCache.empty(small, config.pages, kinds=config.cache_kinds)
    return ReferenceModel(small, weights, reduce=reduce, taps=config.taps), cache


def draft_cache(config: EngineConfig) -> KvCache:
    """Return rank 0's cache of what the draft alone reads: its layers, of all kv heads."""
    return KvCache.empty(
        config.shape,
        config.pages,
        config.draft_layers,
        config.cache_kinds,
        config.features,
        first_layer=config.shape.num_layers,
    )


def threads_of_rank(config: EngineConfig) -> int:
    """Return the torch threads of each rank: as asked, or the cores shared out, at least 1."""
    return config.threads or max(1, len(os.sched_getaffinity(0)) // config.tp)
