"""The target as the runner uses it: in this process alone, or divided among ranks."""

from __future__ import annotations

import os
from typing import Protocol

from torch import Tensor

from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.deployment import refuse_compiled, refuse_mono
from infx.engine.model.reference import ReferenceModel
from infx.engine.mono.refusal import Refusal
from infx.engine.ranks.ranked import Ranked
from infx.engine.weights import target_weights

__all__ = ["Target", "load_target"]


class Target(Protocol):
    """A target with its cache. ``cache`` is what a draft reads and writes: its own layers.

    ``pids`` are the processes that compute, this one first. ``layers`` says what computes, as
    `infx.engine.config.LAYERS` names it. What waits for another process raises EngineError
    (``rank-died``).
    """

    embed: Tensor
    cache: KvCache
    pids: list[int]
    layers: str

    @property
    def refusal(self) -> Refusal | None:
        """Why mono did not serve the last step, or serves none; None: it did, or is off."""

    def forward(self, batch: Batch, *, prefill: bool) -> tuple[Tensor, Tensor]:
        """Return the residual stream [R, hidden] and the tapped ones; fills the cache.

        ``prefill``: some rows are a prompt's.
        """

    def head(self, stream: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of residual streams [n, hidden]."""

    def check(self) -> None:
        """Raise EngineError unless every process lives."""

    def close(self) -> None:
        """End the other processes."""


def load_target(config: EngineConfig) -> Target:
    """Return the target that ``config`` asks for, ready. Raises EngineError (``rank-died``)."""
    if config.tp > 1:
        return Ranked(config)
    if config.layers == "reference" or refuse_compiled(config):
        return _Reference(config)
    return _Compiled(config)


class _Reference:
    layers = "reference"

    def __init__(self, config: EngineConfig) -> None:
        shape = config.shape
        weights = target_weights(shape, config.weights, config.expert_dtype)
        self._model = ReferenceModel(shape, weights, config.projection_dtype, taps=config.taps)
        self.embed, self.head, self.pids = self._model.embed, self._model.head, [os.getpid()]
        self.cache = KvCache.empty(
            shape, config.pages, config.draft_layers, config.cache_kinds, config.features
        )
        self.refusal = refuse_mono(config) if config.mono == "on" else None

    def forward(self, batch: Batch, *, prefill: bool) -> tuple[Tensor, Tensor]:
        return self._model.forward(batch, self.cache)

    def check(self) -> None:
        pass

    def close(self) -> None:
        pass


class _Compiled:
    layers = "compiled"

    def __init__(self, config: EngineConfig) -> None:
        # Here: numba takes a second to import, and the other targets do without it.
        from infx.engine.model.compiled import load_compiled

        self.cache = KvCache.empty(
            config.shape, config.pages, config.draft_layers, config.cache_kinds, config.features
        )
        self._model = load_compiled(config, self.cache)
        self.embed, self.head, self.pids = self._model.embed, self._model.head, [os.getpid()]
        self.forward, self.close = self._model.forward, self._model.close

    @property
    def refusal(self) -> Refusal | None:
        return self._model.refusal

    def check(self) -> None:
        pass
