"""Worlds of the attention half alone: drawn sums of the projection, caches, no other weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from infx.engine.mono.cuda.dense_layer import qkv_heads
from infx.engine.mono.cuda.random_layer import Layer, make_caches
from infx.engine.mono.cuda.random_step import Step, deal_pages, held_slots, make_step
from infx.engine.mono.cuda.setting import SHAPE, Asked
from infx.engine.mono.shape import Kind

SUMS = ("qkv_sums", "qkv_squares")


def attention_world(
    requests: Sequence[Asked],
    rows: int,
    kv: str,
    index: str,
    seed: int,
    kind: Kind = "sparse",
) -> tuple[Layer, Step]:
    """Return a layer without matrices, whose caches lack what the step itself brings."""
    tables, draw = deal_pages(requests, seed), torch.Generator().manual_seed(seed)
    step = make_step(requests, rows, tables, kind=kind)
    sums, squares = (step.tensors[name] for name in SUMS)
    sums.normal_(generator=draw)
    squares.normal_(generator=draw).abs_().mul_(SHAPE.hidden)
    before = [Asked(asked.context, 0) for asked in requests]
    slots, pages = held_slots(before, tables), 1 + sum(map(len, tables))
    size = qkv_heads(kind) - 1, SHAPE.head_dim
    norm = {"head_norm": 1 + 0.1 * torch.randn(size, generator=draw)}
    return Layer(norm, *make_caches(seed, slots, pages, kv, index)), step


def with_sums(step: Step, source: Step, rows: Sequence[int]) -> Step:
    """Return ``step`` with the sums of ``rows`` of ``source``."""
    for name in SUMS:
        step.tensors[name].copy_(source.tensors[name][:, list(rows)])
    return step
