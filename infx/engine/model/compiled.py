"""The target as compiled layers over the paged cache: unfused, or mono where it serves.

A row's bits depend on that row alone, whatever computes it: a decode step of mono, one of unfused
layers, or a piece of a prompt. So neither the other requests of a step nor a prompt's chunks, found
prefixes and preemption change what a request says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infx.domain.errors import EngineError
from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.deployment import deployment
from infx.engine.model.step import step_rows
from infx.engine.mono.cpu.back_end import CpuBackEnd, packed_layers
from infx.engine.mono.cpu.head import head
from infx.engine.mono.library import Mono, Refusal, StepRows
from infx.engine.mono.shape import MOST_ROWS
from infx.engine.shapes import ModelConfig
from infx.engine.weights import target_weights

__all__ = ["CompiledModel", "load_compiled"]

Floats = np.ndarray[Any, np.dtype[np.float32]]


class CompiledModel:
    """The target. ``weights`` as `infx.engine.weights.target_weights` names them.

    ``taps`` are the layers whose output a draft sees. ``mono`` takes decode steps where it serves:
    `refusal` says why it did not take the last one, None that it did.
    """

    def __init__(
        self,
        shape: ModelConfig,
        weights: Mapping[str, Tensor],
        back_end: CpuBackEnd,
        taps: Sequence[int],
        mono: Mono | Refusal | None,
    ) -> None:
        self.embed = weights["embed"]
        self._shape, self._taps, self._back_end = shape, tuple(taps), back_end
        self._norm, self._head = weights["norm"].numpy(), weights["head"].numpy()
        self._mono = mono if isinstance(mono, Mono) else None
        self.refusal = mono if isinstance(mono, Refusal) else None

    def forward(self, batch: Batch, *, prefill: bool) -> tuple[Tensor, Tensor]:
        """Return the residual stream [R, hidden] and the tapped ones [R, taps · hidden].

        Fills the cache. A tap is the residual stream after its layer. ``prefill``: some rows are a
        prompt's.
        """
        step = step_rows(batch, prefill=prefill)
        if self._mono:
            self.refusal = self._mono.prepare_step(step)
        served = self._mono if self._mono and self.refusal is None else None
        whole = step.rows <= MOST_ROWS
        if whole and served is None:
            self._back_end.prepare(step, MOST_ROWS)
        stream = self.embed[batch.tokens].numpy()
        after = {}
        for layer in range(self._shape.num_layers):
            out = np.empty_like(stream)
            if served and served.serves(layer):
                served.forward_layer(layer, stream, out)
            elif whole:
                self._back_end.run_unfused(layer, stream, out)
            else:
                self._in_pieces(layer, step, stream, out)
            stream = out
            if layer in self._taps:
                after[layer] = torch.from_numpy(out)
        return torch.from_numpy(stream), torch.cat([after[tap] for tap in self._taps], dim=-1)

    def _in_pieces(self, layer: int, step: StepRows, stream: Floats, out: Floats) -> None:
        # Layer by layer, not piece by piece: a layer's weights are fetched once for all of them.
        for rows, piece in _pieces(step):
            self._back_end.prepare(piece, MOST_ROWS)
            self._back_end.run_unfused(layer, stream[rows], out[rows])

    def head(self, stream: Tensor) -> Tensor:
        """Return logits [n, vocabulary] of residual streams [n, hidden]."""
        logits = torch.empty(len(stream), self._head.shape[1])
        eps = np.float32(self._shape.rms_norm_eps)
        head(stream.numpy(), self._norm, self._head, eps, logits.numpy())
        return logits

    def close(self) -> None:
        """Let go of weights and cache."""
        (self._mono or self._back_end).close()


def load_compiled(config: EngineConfig, cache: KvCache) -> CompiledModel:
    """Return the target that ``config`` asks for, over ``cache``; compiles what is not on disk.

    Weights are packed once, here; what they were made of is let go. Raises InfraError
    (``builds-unwritable``), EngineError with the code of what the back end refuses.
    """
    shape = config.shape
    weights = target_weights(shape, config.weights, config.expert_dtype)
    if shape.router_dtype == "bf16":
        routers = {k: v.bfloat16().float() for k, v in weights.items() if k.endswith(".router")}
        weights |= routers
    back_end = CpuBackEnd(shape, packed_layers(shape, weights), cache)
    if refusal := back_end.build(MOST_ROWS):
        raise EngineError(refusal.code, refusal.sentence)
    mono: Mono | Refusal | None = None
    if config.mono == "on":
        mono = Mono.bind(deployment(config), back_end.kinds, back_end, widths=(MOST_ROWS,))
    if isinstance(mono, Mono):
        mono = mono.build(MOST_ROWS) or mono
    return CompiledModel(shape, weights, back_end, config.taps, mono)


def _pieces(step: StepRows) -> Iterator[tuple[slice, StepRows]]:
    """Yield ``step`` in pieces of a build's rows, in order: later rows see the keys of earlier."""
    for first in range(0, step.rows, MOST_ROWS):
        rows = slice(first, first + MOST_ROWS)
        assert step.batch_ids is not None
        yield (
            rows,
            StepRows(
                step.batch_ids[rows],
                step.positions[rows],
                step.slots[rows],
                step.pages[rows],
                step.prefill,
                step.requests,
            ),
        )
