"""The arms of a layer over one cache: in one call, stage by stage, and in plain torch.

The first two are `infx.engine.mono.probe.compiled_arms` on this machine's processor,
`infx.engine.mono.cuda.probed` on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.layers import Rotary
from infx.engine.model.reference import ReferenceModel
from infx.engine.mono.probe.rows import Arm, Numbers, Row
from infx.engine.mono.step import StepRows
from infx.engine.shapes import ModelConfig

__all__ = ["Hosted", "Reference", "Run", "Three", "step_rows"]

Run = Callable[[int, Numbers, Numbers], None]


class Hosted(Protocol):
    """Some arms of a model's layers over a cache that the host has too."""

    def prepare(self, step: StepRows) -> None:
        """Take a step."""

    def running(self, arm: Arm) -> Run:
        """Return what runs a layer of the prepared step: (layer, stream [rows, hidden], out)."""

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return the experts [rows, topk] that the step's rows chose in ``layer``."""

    def fill_scratch(self, nothing: int) -> None:
        """Fill all memory between stages with bytes ``nothing``."""

    def experts(self, layer: int, chosen: Collection[int]) -> list[Tensor]:
        """Return views of the weights of ``chosen`` experts, as this arm reads them."""


def step_rows(rows: Sequence[Row], block: int) -> StepRows:
    """Return ``rows`` as a host hands them over: requests are numbered from 0 as they come."""
    numbers = {-1: -1}
    for row in rows:
        numbers.setdefault(row.request, len(numbers) - 1)
    pages = np.zeros((len(rows), max(len(row.pages) for row in rows)), dtype=np.int32)
    for line, row in zip(pages, rows, strict=True):
        line[: len(row.pages)] = row.pages
    return StepRows(
        batch_ids=np.array([numbers[row.request] for row in rows], dtype=np.int32),
        positions=np.array([row.position for row in rows], dtype=np.int64),
        slots=np.array([row.slot(block) for row in rows], dtype=np.int64),
        pages=pages,
        requests=len(numbers) - 1,
    )


class Reference:
    """The layers in plain torch on the device of ``cache``; on a CPU by one thread."""

    def __init__(self, model: ModelConfig, weights: Mapping[str, Any], cache: KvCache) -> None:
        torch.set_num_threads(1)
        self._cache, self._weights = cache, weights
        with self._there():
            self._model = ReferenceModel(model, weights)
            sizes = (model.head_dim, model.rotary_dim, model.rope_theta, model.farthest)
            self._rotary = Rotary(*sizes)

    def _there(self) -> AbstractContextManager[Any]:
        """Make tensors on the cache's device; nothing on a CPU, where it would take time."""
        device = self._cache.device
        return nullcontext() if device.type == "cpu" else device

    def prepare(self, step: StepRows) -> None:
        """Take a step."""
        with self._there():
            batch = _batch(step, self._cache.block)
            self._batch, self._turn = batch, self._rotary.at(batch.positions)

    def running(self, arm: Arm = "reference") -> Run:
        """Return what runs a layer of the prepared step: (layer, stream [rows, hidden], out)."""
        return self._run

    @torch.inference_mode()
    def _run(self, layer: int, stream: Numbers, out: Numbers) -> None:
        with self._there():
            given = torch.from_numpy(stream).to(self._cache.device)
            made = self._model._layers[layer].forward(given, self._turn, self._batch, self._cache)
        out[:] = made.cpu().numpy()

    def routing(self, layer: int) -> npt.NDArray[np.int64]:
        """Return no experts: plain torch does not tell them."""
        return np.empty((self._batch.rows, 0), dtype=np.int64)

    def fill_scratch(self, nothing: int) -> None:
        """Do nothing: torch makes its memory anew."""

    def experts(self, layer: int, chosen: Collection[int]) -> list[Tensor]:
        """Return views of the weights of ``chosen`` experts."""
        names = (f"layers.{layer}.experts_up", f"layers.{layer}.experts_down")
        return [self._weights[name][expert] for name in names for expert in chosen]


class Three:
    """All arms over one cache; ``runs`` are what runs a layer of the prepared step."""

    def __init__(self, compiled: Hosted, reference: Reference) -> None:
        self.compiled, self.reference = compiled, reference
        self.runs: dict[Arm, Run] = {
            "mono": compiled.running("mono"),
            "unfused": compiled.running("unfused"),
            "reference": reference.running("reference"),
        }

    def prepare(self, step: StepRows) -> None:
        """Take a step, for all arms."""
        self.compiled.prepare(step)
        self.reference.prepare(step)


def _batch(step: StepRows, block: int) -> Batch:
    """Return the step as the engine's own batch: neighbours of one request are a span."""
    ids, positions, pages = (np.asarray(x) for x in (step.batch_ids, step.positions, step.pages))
    spans: list[Span] = []
    for row, request in enumerate(ids.tolist()):
        if request < 0:
            spans.append(Span([], 1, (0,), dead=1))
        elif row and ids[row - 1] == request:
            before = spans.pop()
            spans.append(Span([*before.tokens, 0], before.start, before.pages))
        else:
            spans.append(Span([0], int(positions[row]), pages[row].tolist()))
    return make_batch(spans, block)
