"""Mono bound to an engine's weights and caches: `Mono.prepare_step`, `forward_layer`, `close`.

Weights are packed once, here; caches are never copied: kernels write into the engine's tensors. An
engine calls `prepare_step` once a step, then `forward_layer` for each layer in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.mono.cpu.compiled import Build, cpu_key, load
from infx.engine.mono.cpu.layer import NOTHING, Arm, LayerCache, Memory, Rows, mono, unfused
from infx.engine.mono.cpu.pack import Floats, packed
from infx.engine.mono.shape import MOST_ROWS, Caches, Kind, LayerShape
from infx.engine.shapes import ModelConfig

__all__ = ["Mono", "kind_of", "layer_cache", "layer_shape", "rows_of"]

ARMS = {"mono": mono, "unfused": unfused}
WIDTHS = (1, MOST_ROWS)


def layer_shape(model: ModelConfig) -> LayerShape:
    """Return the shape of the model's layers. Raises ValueError for one that mono does not do."""
    if model.shared_size != model.expert_size:
        raise ValueError(
            f"shared_size {model.shared_size} of {model.name}: mono reads the shared expert as one"
            f" more expert, of {model.expert_size}"
        )
    return LayerShape(
        hidden=model.hidden_size,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        rotary_dim=model.rotary_dim,
        block=model.block_size,
        topk_blocks=model.topk_blocks,
        experts=model.experts,
        experts_per_token=model.experts_per_token,
        expert_size=model.expert_size,
        dense_size=model.dense_size,
        reach=model.max_positions,
        ranks=model.simulated_ranks,
        rope_theta=model.rope_theta,
        norm_eps=model.rms_norm_eps,
        routed_scale=model.routed_scaling_factor,
        swiglu_alpha=model.swiglu_alpha,
        swiglu_limit=model.swiglu_limit,
    )


def kind_of(model: ModelConfig, layer: int) -> Kind:
    """Return the kind of a layer. Raises ValueError for experts under full attention."""
    sparse = model.attends_sparsely(layer)
    if model.has_experts(layer) and not sparse:
        raise ValueError(f"layer {layer} of {model.name} has experts and full attention")
    if model.has_experts(layer):
        return "sparse"
    return "sparse_dense" if sparse else "dense"


def layer_cache(cache: KvCache, layer: int, sparse: bool) -> LayerCache:
    """Return views of the layer's part of ``cache``."""
    kv, index = cache._kv, cache._index
    parts = [_flat(part[layer - kv.first]) for part in kv.parts]
    keys = [_flat(part[layer - index.first]) for part in index.parts] if sparse else []
    return LayerCache(*_two(parts), *_two(keys))


def rows_of(batch: Batch) -> tuple[npt.NDArray[Any], ...]:
    """Return the arguments of `Mono.prepare_step` for a batch of the engine's."""
    rows, most = batch.rows, max(group.table.shape[1] for group in batch.groups)
    slots = np.zeros(rows, dtype=np.int64)
    slots[batch.live.numpy()] = batch.slots.numpy()
    pages = np.zeros((rows, most), dtype=np.int32)
    for group in batch.groups:
        table = np.repeat(group.table.numpy(), group.rows, axis=0)
        pages[group.slice, : table.shape[1]] = table
    return batch.batch_ids.numpy(), batch.positions.numpy(), slots, pages


def _two(parts: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    first, second, *_ = (*parts, NOTHING, NOTHING)
    return first, second


def _flat(tensor: Any) -> npt.NDArray[Any]:
    """Return a flat view of a tensor; numpy has no bfloat16, so its bits."""
    import torch

    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    return tensor.view(-1).numpy()  # type: ignore[no-any-return]


class Mono:
    """The layers of ``model`` over borrowed ``weights`` (infx's names) and ``cache``.

    ``widths`` are the builds: a step takes the narrowest that holds its rows. ``taps`` are the
    layers whose output is an auxiliary state as well. ``arms`` are those that are compiled here;
    another compiles when it first runs. Raises ValueError for a model that mono does not do.
    """

    def __init__(
        self,
        model: ModelConfig,
        weights: Mapping[str, Any],
        cache: KvCache,
        *,
        arms: Collection[str] = ("mono",),
        widths: Sequence[int] = WIDTHS,
        taps: Collection[int] = (),
        folder: Path | None = None,
    ) -> None:
        self._model, self._shape = model, layer_shape(model)
        self._layers = [
            _Layer(model, self._shape, weights, cache, number, widths, number in taps, folder)
            for number in range(model.num_layers)
        ]
        tables = {width: self._layers[0].builds[width].table for width in sorted(widths)}
        self._rows = {width: Rows(table) for width, table in tables.items()}
        self._memory = self._memories(widths)
        self._turn = _rotary(self._shape)
        self._width, self._count = 0, 0
        for arm in arms:
            self._compile(ARMS[arm])

    def _memories(self, widths: Sequence[int]) -> dict[tuple[Kind, int], Memory]:
        return {
            (layer.kind, width): Memory(layer.builds[width].table)
            for layer in self._layers
            for width in widths
        }

    def _compile(self, arm: Callable[[Build], Arm]) -> None:
        """Run a step of pads, so that all is compiled, or taken from disk, before the first one."""
        for width in self._rows:
            pads = np.full(width, -1, dtype=np.int32)
            nowhere = np.zeros(width, dtype=np.int32)
            self.prepare_step(pads, nowhere, nowhere, nowhere[:, None])
            stream = np.zeros((width, self._shape.hidden), dtype=np.float32)
            for number in range(len(self._layers)):
                self._forward(arm, number, stream, stream.copy(), stream.copy())

    def prepare_step(
        self,
        batch_ids: npt.NDArray[np.int32],
        positions: npt.NDArray[Any],
        slots: npt.NDArray[Any],
        pages: npt.NDArray[Any],
    ) -> None:
        """Take the rows of a step: [n] each, ``pages`` [n, m] the pages of each row's request.

        Batch id -1 is a pad. Raises ValueError, having changed nothing, for a step that no build
        takes.
        """
        self._check_step(batch_ids, positions, slots, pages)
        rows = len(batch_ids)
        width = next(width for width in self._rows if width >= rows)
        at = np.where(batch_ids < 0, 0, positions)
        self._rows[width].fill(batch_ids, at, slots, pages, self._turn[at])
        self._width, self._count = width, rows

    def _check_step(self, batch_ids: Any, positions: Any, slots: Any, pages: Any) -> None:
        rows, most = len(batch_ids), max(self._rows)
        if batch_ids.dtype != np.int32:
            raise ValueError(f"batch ids are {batch_ids.dtype}: expected int32")
        if not len(positions) == len(slots) == len(pages) == rows:
            raise ValueError(
                f"{rows} batch ids, {len(positions)} positions, {len(slots)} slots and"
                f" {len(pages)} page lists: expected as many of each"
            )
        if not 1 <= rows <= most:
            raise ValueError(f"a step of {rows} rows: expected 1 to {most}")
        live = batch_ids >= 0
        last = int(positions[live].max()) if live.any() else 0
        held = pages.shape[1] * self._shape.block
        if last >= min(held, self._shape.reach) or pages.shape[1] > self._shape.pages:
            raise ValueError(
                f"position {last} with {pages.shape[1]} pages: expected below"
                f" {min(held, self._shape.reach)} and at most {self._shape.pages} pages"
            )

    def forward_layer(
        self, number: int, stream_in: Floats, stream_out: Floats, aux: Floats | None = None
    ) -> None:
        """Write what layer ``number`` makes of ``stream_in`` [n, hidden], and its auxiliary state.

        Streams are C-contiguous float32; ``stream_out`` may not be ``stream_in``. Fills the cache.
        """
        self._forward(mono, number, stream_in, stream_out, aux)

    def unfused_layer(
        self, number: int, stream_in: Floats, stream_out: Floats, aux: Floats | None = None
    ) -> None:
        """Do as `forward_layer`, by a call a stage: the baseline, and what mono is checked with."""
        self._forward(unfused, number, stream_in, stream_out, aux)

    def _forward(
        self,
        arm: Callable[[Build], Arm],
        number: int,
        stream_in: Floats,
        stream_out: Floats,
        aux: Floats | None,
    ) -> None:
        layer, width = self._layers[number], self._width
        rows, memory = self._rows[width], self._memory[layer.kind, width]
        layer.arms[arm, width](
            rows.step,
            memory.ints,
            rows.turn,
            layer.weights,
            memory.scratch,
            stream_in.reshape(-1),
            stream_out.reshape(-1),
            NOTHING if aux is None else aux.reshape(-1),
            memory.routing.reshape(-1),
            layer.cache.kv,
            layer.cache.kv_scale,
            layer.cache.index,
            layer.cache.index_scale,
        )

    def routing(self, number: int) -> npt.NDArray[np.int64]:
        """Return the expert ids [n, topk] that the rows chose in ``number``, the layer run last."""
        memory = self._memory[self._layers[number].kind, self._width]
        return memory.routing[: self._count, 0].astype(np.int64)

    def close(self) -> None:
        """Let go of the borrowed cache and of the packed weights."""
        self._layers.clear()


class _Layer:
    def __init__(
        self,
        model: ModelConfig,
        shape: LayerShape,
        weights: Mapping[str, Any],
        cache: KvCache,
        number: int,
        widths: Sequence[int],
        tapped: bool,
        folder: Path | None,
    ) -> None:
        self.kind = kind_of(model, number)
        caches = _caches(cache.kinds)
        self.builds: dict[int, Build] = {
            width: load(cpu_key(shape, self.kind, width, caches, tapped), folder)
            for width in widths
        }
        prefix = f"layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        self.weights = packed(self.builds[widths[0]].table, own)
        self.cache = layer_cache(cache, number, self.kind != "dense")
        self.arms: dict[tuple[Callable[[Build], Arm], int], Arm] = {
            (arm, width): arm(build)
            for arm in ARMS.values()
            for width, build in self.builds.items()
        }


def _caches(kinds: Kinds) -> Caches:
    return Caches(kinds.kv, kinds.index)


def _rotary(shape: LayerShape) -> Floats:
    """Return cos, then sin, of each position's angles [reach, rotary dim]."""
    half = shape.rotary_dim // 2
    inverse = [shape.rope_theta ** -(2 * i / shape.rotary_dim) for i in range(half)]
    angles = np.arange(shape.reach)[:, None] * np.array(inverse)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
