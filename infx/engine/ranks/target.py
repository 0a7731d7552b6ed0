"""The target as the runner uses it: in this process alone, or divided among ranks."""

from __future__ import annotations

import os
from typing import Protocol

from torch import Tensor

from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.ranks.ranked import Ranked
from infx.engine.weights import target_weights

__all__ = ["Target", "load_target"]


class Target(Protocol):
    """A target with its cache. ``cache`` is what a draft reads and writes: its own layers.

    ``pids`` are the processes that compute, this one first. What waits for another process raises
    EngineError (``rank-died``).
    """

    embed: Tensor
    cache: KvCache
    pids: list[int]

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the residual stream [R, hidden] and the tapped ones; fills the cache."""

    def head(self, stream: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of residual streams [n, hidden]."""

    def check(self) -> None:
        """Raise EngineError unless every process lives."""

    def close(self) -> None:
        """End the other processes."""


def load_target(config: EngineConfig) -> Target:
    """Return the target that ``config`` asks for, ready. Raises EngineError (``rank-died``)."""
    return Ranked(config) if config.tp > 1 else _Alone(config)


class _Alone:
    def __init__(self, config: EngineConfig) -> None:
        shape = config.shape
        weights = target_weights(shape, config.weights, config.expert_dtype)
        self._model = ReferenceModel(shape, weights, config.projection_dtype, taps=config.taps)
        self.embed, self.head, self.pids = self._model.embed, self._model.head, [os.getpid()]
        self.cache = KvCache.empty(
            shape, config.pages, config.draft_layers, config.cache_kinds, config.features
        )

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self._model.forward(batch, self.cache)

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass
