"""Inputs of the attention half of a layer at true shapes, in torch: a step, caches, projections.

What is here needs torch and no GPU: the same worlds are run by the emulated kernels of the tests
and by the bench on a device. Tensors have the names of the fields of ``LayerArgs``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.mono.shape import GPU_GRAIN, SHAPES
from infx.engine.quant import fp8_quantise, fp8_unpack, mxfp4_pack, mxfp4_unpack, saturating_e4m3

__all__ = ["KINDS", "SHAPE", "Asked", "Store", "World", "make_world"]

SHAPE = SHAPES["m3_tp4_rank"]
KINDS = ("bf16", "fp8", "mxfp4")
HEADS, DIM, BLOCK = SHAPE.heads, SHAPE.head_dim, SHAPE.block
ALL_HEADS = HEADS + 4
QKV_PARTS, LINE = GPU_GRAIN.qkv_parts, DIM + 4
PARTITIONS = SHAPE.topk_blocks * BLOCK // SHAPE.partition
NAN_CODE, NAN_SCALE = 0x7F, 255
_TRACED = (132, 64)
_ROW_AXES = {
    "qkv_sums": 1,
    "qkv_squares": 1,
    "queries": 1,
    "merged": 1,
    "attended": 1,
    "attended_back": 1,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: tokens that its cache holds, and the rows that come after them."""

    context: int
    rows: int = 1


@dataclass(slots=True)
class Store:
    """Vectors of one kind in pages: ``numbers`` [pages, block, width]; ``scales`` None: none.

    ``scaled``: fp8 with a float scale a vector, as keys and values have.
    """

    kind: str
    scaled: bool
    numbers: Tensor
    scales: Tensor | None

    @classmethod
    def unwritten(cls, kind: str, scaled: bool, pages: int, device: str) -> Store:
        """Return pages of NaN."""
        width = {"bf16": DIM, "fp8": DIM, "mxfp4": DIM // 2}[kind]
        dtype = torch.bfloat16 if kind == "bf16" else torch.uint8
        fill = torch.nan if kind == "bf16" else NAN_CODE
        numbers = torch.full((pages, BLOCK, width), fill, dtype=dtype, device=device)
        scales = None
        if kind == "mxfp4":
            scales = torch.full((pages, BLOCK, 4), NAN_SCALE, dtype=torch.uint8, device=device)
        elif kind == "fp8" and scaled:
            scales = torch.full((pages, BLOCK), torch.nan, device=device)
        return cls(kind, scaled, numbers, scales)

    def parts(self) -> list[Tensor]:
        """Return numbers and scales."""
        return [self.numbers] if self.scales is None else [self.numbers, self.scales]

    def clone(self) -> Store:
        """Return a copy in memory of its own."""
        scales = None if self.scales is None else self.scales.clone()
        return Store(self.kind, self.scaled, self.numbers.clone(), scales)

    def write(self, slots: Tensor, vectors: Tensor) -> None:
        """Keep float32 ``vectors`` [n, dim] at ``slots`` [n]."""
        for part, new in zip(self.parts(), self._encoded(vectors), strict=True):
            part.flatten(0, 1)[slots] = new

    def _encoded(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.kind == "bf16":
            return (x.bfloat16(),)
        if self.kind == "mxfp4":
            return mxfp4_pack(x)
        if not self.scaled:
            return (saturating_e4m3(x).view(torch.uint8),)
        codes, scale = fp8_quantise(x, -1)
        return codes.view(torch.uint8), scale[..., 0]

    def read(self, pages: Tensor) -> Tensor:
        """Return float32 [n block, dim] of ``pages`` [n]."""
        parts = [part[pages].flatten(0, 1) for part in self.parts()]
        if self.kind == "bf16":
            return parts[0].float()
        if self.kind == "mxfp4":
            return mxfp4_unpack(*parts)
        numbers = fp8_unpack(parts[0])
        return numbers * parts[1][:, None] if self.scaled else numbers


@dataclass(slots=True)
class World:
    """One step over one layer's caches. ``tensors``: all but caches, by field of ``LayerArgs``."""

    requests: tuple[Asked, ...]
    rows: int
    pages: list[list[int]]
    tensors: dict[str, Tensor]
    keys: Store
    values: Store
    index: Store

    @property
    def spans(self) -> list[tuple[Asked, list[int], slice]]:
        """Each request with its pages and its rows."""
        spans, first = [], 0
        for asked, pages in zip(self.requests, self.pages, strict=True):
            spans.append((asked, pages, slice(first, first + asked.rows)))
            first += asked.rows
        return spans

    @property
    def stores(self) -> tuple[Store, Store, Store]:
        """Keys, values, index keys."""
        return self.keys, self.values, self.index

    def copy(self) -> World:
        """Return the same in memory of its own."""
        tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        return self.with_stores([store.clone() for store in self.stores], tensors)

    def with_stores(
        self, stores: Iterable[Store], tensors: dict[str, Tensor] | None = None
    ) -> World:
        """Return the step over other caches; its tensors are the same ones unless given."""
        tensors = self.tensors if tensors is None else tensors
        return World(self.requests, self.rows, self.pages, tensors, *stores)

    def only(self, row: int) -> World:
        """Return a step of ``row`` alone, over copies of these caches."""
        tensors = {}
        for name, tensor in self.tensors.items():
            if name not in ("head_norm", "trace"):
                tensor = tensor.narrow(_ROW_AXES.get(name, 0), row, 1).contiguous()
            tensors[name] = tensor.clone()
        return self.with_stores([store.clone() for store in self.stores], tensors)

    def fields(self) -> dict[str, Tensor]:
        """Return every tensor that kernels get, by field."""
        stores = {"key": self.keys, "value": self.values, "index": self.index}
        names = {"key": "keys", "value": "values", "index": "index_keys"}
        fields = dict(self.tensors)
        for name, store in stores.items():
            fields[names[name]] = store.numbers
            if store.scales is not None:
                fields[f"{name}_scales"] = store.scales
        return fields


def make_world(
    requests: Sequence[Asked],
    rows: int,
    kv: str,
    index: str,
    seed: int = 0,
    device: str = "cpu",
    reach_pages: int = 1024,
) -> World:
    """Return a step of ``requests`` and pads up to ``rows``; what nobody wrote is NaN.

    Pages of a request lie anywhere in the cache. Everything random comes from ``seed``.
    """
    draw = torch.Generator(device=device).manual_seed(seed)
    counts = [-(-(asked.context + asked.rows) // BLOCK) for asked in requests]
    total = sum(counts) + 1
    mixed = torch.randperm(total, generator=draw, device=device).tolist()
    pages, first = [], 0
    for count in counts:
        pages.append(mixed[first : first + count])
        first += count
    stores = [
        Store.unwritten(kind, scaled, total, device)
        for kind, scaled in ((kv, True), (kv, True), (index, False))
    ]
    world = World(tuple(requests), rows, pages, {}, *stores)
    for asked, own, _ in world.spans:
        if asked.context:
            _fill(world, asked.context, torch.tensor(own, device=device), draw)
    world.tensors |= _step(world, max(counts), device)
    world.tensors |= _projected(rows, draw, device) | _scratch(rows, reach_pages, device)
    return world


def _fill(world: World, tokens: int, pages: Tensor, draw: torch.Generator) -> None:
    at = torch.arange(tokens, device=pages.device)
    slots = pages[at // BLOCK] * BLOCK + at % BLOCK
    # Normed keys have a length of about sqrt(dim); one direction in common, as trained keys have.
    common = torch.randn(DIM, generator=draw, device=pages.device)
    for store, shared in ((world.keys, 0.5), (world.values, 0.0), (world.index, 0.5)):
        vectors = torch.randn(tokens, DIM, generator=draw, device=pages.device)
        store.write(slots, vectors + shared * common)


def _step(world: World, most_pages: int, device: str) -> dict[str, Tensor]:
    ids = torch.full((world.rows,), -1, dtype=torch.int32)
    positions, slots = torch.zeros_like(ids), torch.zeros_like(ids)
    table = torch.zeros(world.rows, most_pages, dtype=torch.int32)
    for number, (asked, pages, own) in enumerate(world.spans):
        at = torch.arange(asked.context, asked.context + asked.rows)
        ids[own], positions[own] = number, at.int()
        slots[own] = (torch.tensor(pages)[at // BLOCK] * BLOCK + at % BLOCK).int()
        table[own, : len(pages)] = torch.tensor(pages, dtype=torch.int32)
    inverse = SHAPE.rope_theta ** -(
        torch.arange(0, SHAPE.rotary_dim, 2).double() / SHAPE.rotary_dim
    )
    angles = positions.double()[:, None] * inverse
    step = {
        "batch_ids": ids,
        "positions": positions,
        "slots": slots,
        "pages": table,
        "rotary": torch.cat([angles.cos(), angles.sin()], 1).float(),
    }
    return {name: tensor.to(device) for name, tensor in step.items()}


def _projected(rows: int, draw: torch.Generator, device: str) -> dict[str, Tensor]:
    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=draw, device=device)

    return {
        "qkv_sums": normal(QKV_PARTS, rows, ALL_HEADS * DIM),
        "qkv_squares": normal(QKV_PARTS, rows).abs() * SHAPE.hidden,
        "head_norm": 1 + 0.1 * normal(ALL_HEADS - 1, DIM),
    }


def _scratch(rows: int, reach_pages: int, device: str) -> dict[str, Tensor]:
    sizes = {
        "queries": (HEADS, rows, DIM),
        "scores": (rows, reach_pages),
        "partials": (rows, PARTITIONS, HEADS, LINE),
        "merged": (HEADS, rows, DIM),
        "attended_back": (HEADS, rows),
    }
    scratch = {name: torch.full(size, torch.nan, device=device) for name, size in sizes.items()}
    scratch["chosen"] = torch.full((rows, SHAPE.topk_blocks), -7, dtype=torch.int32, device=device)
    scratch["trace"] = torch.zeros(_TRACED, dtype=torch.int64, device=device)
    scratch["attended"] = torch.full_like(scratch["merged"], torch.nan, dtype=torch.float16)
    scratch["merge_counts"] = torch.zeros(rows, dtype=torch.int32, device=device)
    return scratch
