"""The ranks of a target as threads of this process, for comparison with those of processes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from infx.engine.batch import Batch
from infx.engine.config import EngineConfig
from infx.engine.ranks.slice import load_slice


class Table:
    """Where threads put their parts; each takes the sum, added in ``order``."""

    def __init__(self, order: Sequence[int]) -> None:
        self._order, self._parts = order, [torch.empty(0)] * len(order)
        self._full = threading.Barrier(len(order))

    def add(self, rank: int, part: Tensor) -> Tensor:
        self._parts[rank] = part
        self._full.wait(60)
        total = self._parts[self._order[0]]
        for other in self._order[1:]:
            total = total + self._parts[other]
        self._full.wait(60)
        return total


def threaded_streams(
    config: EngineConfig, batches: Sequence[Batch], order: Sequence[int]
) -> list[list[Tensor]]:
    """Return each rank's residual streams of ``batches``, ranks added in ``order``."""
    table = Table(order)

    @torch.inference_mode()
    def run(rank: int) -> list[Tensor]:
        model, cache = load_slice(config, rank, lambda part: table.add(rank, part))
        return [model.forward(batch, cache)[0] for batch in batches]

    with ThreadPoolExecutor(config.tp) as pool:
        return list(pool.map(run, range(config.tp)))
