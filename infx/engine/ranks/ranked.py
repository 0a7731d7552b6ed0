"""Rank 0's side: a target that computes with all ranks."""

from __future__ import annotations

from typing import NoReturn

from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from infx.domain.errors import EngineError
from infx.engine.batch import Batch
from infx.engine.config import EngineConfig
from infx.engine.deployment import refuse_mono
from infx.engine.ranks.exchange import add_at_root, join, leave, rendezvous
from infx.engine.ranks.processes import Processes
from infx.engine.ranks.slice import draft_cache, load_slice
from infx.engine.ranks.wire import pack

__all__ = ["Ranked"]


class Ranked:
    """The target over ``config.tp`` ranks (`Target`); starts the other ranks.

    Raises EngineError (``rank-died``), here and in each use, when a rank ends or is silent; after
    that only `close` is of use.
    """

    layers = "reference"

    def __init__(self, config: EngineConfig) -> None:
        store = rendezvous()
        self._limit_s, self._processes = config.rank_limit_s, Processes(config, store.port)
        try:
            self._model, self._own = load_slice(config, 0, add_at_root(config.tp, self._lost))
            self._processes.await_loaded()
            self._processes.tell(b"join")
            self._join(config.tp, store)
        except BaseException:
            self._processes.kill()
            raise
        self.embed, self.head = self._model.embed, self._model.head
        self.pids = self._processes.pids
        self.cache = draft_cache(config)
        self.refusal = refuse_mono(config) if config.mono == "on" else None

    def forward(self, batch: Batch, *, prefill: bool) -> tuple[Tensor, Tensor]:
        """Return what `ReferenceModel.forward` does; each rank fills its own cache."""
        self._processes.tell(pack(batch))
        return self._model.forward(batch, self._own)

    def check(self) -> None:
        """Raise EngineError (``rank-died``) when a rank has ended."""
        self._processes.check()

    def close(self) -> None:
        """End the other ranks."""
        self._processes.end()
        leave()

    def _join(self, ranks: int, store: TCPStore) -> None:
        try:
            join(0, ranks, self._limit_s, store)
        except RuntimeError as error:
            self._processes.check()
            message = f"the {ranks} ranks did not connect: {error}; start the server again"
            raise EngineError("rank-died", message) from error

    def _lost(self, rank: int, error: RuntimeError) -> NoReturn:
        raise self._processes.lost(rank, self._limit_s) from error
