"""A back end of the library in plain Python: the interpreter over a host's nested lists.

The oracle of hosts: what any other back end gives a host must be what this one gives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.engine.mono.arithmetic import vector
from infx.engine.mono.check import check
from infx.engine.mono.interpret import run
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import Kind, LayerShape
from infx.engine.mono.step import StepRows
from infx.engine.mono.table import Table
from infx.engine.mono.task import PagedCache, Step
from infx.engine.mono.weights import Weights

__all__ = ["BorrowedLayer", "Oracle"]


@dataclass(frozen=True, slots=True)
class BorrowedLayer:
    """One layer of a host: weights by infx's names, matrices [in][out]; its cache."""

    kind: Kind
    weights: Mapping[str, Any]
    cache: PagedCache


class Oracle:
    """A `BackEnd` over ``layers``; ``table_of`` gives the table of a kind and a width.

    Streams are arrays or lists of rows.
    """

    def __init__(
        self,
        shape: LayerShape,
        layers: Sequence[BorrowedLayer],
        table_of: Callable[[Kind, int], Table],
    ) -> None:
        self._shape, self._layers, self._table_of = shape, list(layers), table_of
        self._tables: dict[tuple[Kind, int], Table] = {}
        self._weights: dict[int, Weights] = {}
        self._width, self._step = 0, Step((), (), (), ())

    def refuse(self) -> Refusal | None:
        """Return the first weight that is missing or has the wrong number of inputs."""
        for number, layer in enumerate(self._layers):
            for name, inputs in _inputs(self._shape, layer.kind).items():
                found = len(layer.weights.get(name, ()))
                if found != inputs:
                    sentence = f"{name} of layer {number} has {found} inputs: expected {inputs}"
                    return Refusal("mono-weights", sentence)
        return None

    def build(self, width: int) -> Refusal | None:
        """Make the tables of all layers; refuse a faulty one."""
        for number, layer in enumerate(self._layers):
            table = self._table_of(layer.kind, width)
            if faults := check(table):
                sentence = f"width {width}: {faults[0].code}: {faults[0].sentence}"
                return Refusal("mono-build-failed", sentence)
            self._tables[layer.kind, width] = table
            self._weights.setdefault(number, Weights(table, layer.weights))
        return None

    def prepare(self, step: StepRows, width: int) -> None:
        """Take the rows, and pads up to ``width``."""
        assert step.batch_ids is not None  # dispatch's answer
        pads = width - step.rows
        self._width = width
        self._step = Step(
            (*step.batch_ids.tolist(), *[-1] * pads),
            (*step.positions.tolist(), *[0] * pads),
            (*step.slots.tolist(), *[0] * pads),
            (*map(tuple, step.pages.tolist()), *[()] * pads),
        )

    def run(self, layer: int, stream_in: Any, stream_out: Any) -> None:
        """Fill the rows of ``stream_out``, and the layer's cache."""
        own = self._layers[layer]
        table = self._tables[own.kind, self._width]
        rows = [vector(row) for row in stream_in]
        pads = [vector([math.nan] * self._shape.hidden)] * (self._width - len(rows))
        made = run(table, self._weights[layer], own.cache, self._step, rows + pads)
        for row in range(len(rows)):
            stream_out[row] = made.stream[row]

    def close(self) -> None:
        """Let go of the layers."""
        self._layers.clear()
        self._weights.clear()


def _inputs(shape: LayerShape, kind: Kind) -> dict[str, int]:
    mlp = shape.expert_size if kind == "sparse" else shape.dense_size
    sizes = {"attention_norm": shape.hidden, "mlp_norm": shape.hidden, "qkv": shape.hidden}
    sizes |= {"o": shape.heads * shape.head_dim, "up": shape.hidden, "down": mlp}
    if kind == "sparse":
        experts = shape.experts
        sizes |= {"router": shape.hidden, "router_bias": experts}
        sizes |= {"experts_up": experts, "experts_down": experts}
    return sizes
