"""What the attention half must give: infx's reference model, and the plan's arithmetic for caches.

Scores, chosen blocks and outputs are those of `infx.engine.model.attention`, in float32. Bytes of
caches and queries must be equal bit for bit to the order of operations that the plan gives.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.random_layer import Layer
from infx.engine.mono.cuda.random_step import Step
from infx.engine.mono.cuda.setting import SHAPE
from infx.engine.mono.cuda.store import Store

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["judge_attention"]

HEADS, DIM, BLOCK = SHAPE.heads, SHAPE.head_dim, SHAPE.block
IQ_HEAD = HEADS + 1


def judge_attention(before: Layer, after: Layer, step: Step) -> dict[str, float]:
    """Return how what kernels left in ``step`` and ``after`` differs from what is right.

    ``before`` holds the caches that the step began with. ``queries``, ``caches``, ``pads`` count
    numbers with wrong bits (pads: that are not 0), ``own-blocks`` and ``blocks`` choices that are
    not those of the kernels' own scores and of the truth's; the others are ||d|| / ||truth||, of
    ``scores`` and ``attention`` the largest of a row's. Layers that attend to all keys have neither
    queries in memory nor scores.
    """
    heads, ours, live = _heads(before, step), step.tensors, step.live
    truth = _written(before, heads[:live], step)
    pairs = [
        pair
        for right, found in zip(truth.stores, after.stores, strict=True)
        for pair in zip(right.parts(), found.parts(), strict=True)
    ]
    attended = ours["attended"].float() * ours["attended_back"][..., None]
    figures = _judge_all if step.kind == "dense" else _judge_chosen
    return figures(truth, step, heads) | {
        "caches": sum(_differing(*pair) for pair in pairs),
        "attended": _error(attended[:, :live], ours["merged"][:, :live]),
        "pads": sum(int(x[:, live:].ne(0).sum()) for x in (ours["merged"], attended)),
    }


def _judge_chosen(truth: Layer, step: Step, heads: Tensor) -> dict[str, float]:
    """Return the figures of attention to chosen blocks."""
    import torch

    live = step.live
    queries = heads[:live, :HEADS].transpose(0, 1).contiguous()
    rows = [_row(truth, step, heads, number, row) for number, row in _rows(step)]
    scores, own, others, merged = map(torch.tensor, zip(*rows, strict=True))
    return {
        "queries": _differing(queries, step.tensors["queries"][:, :live]),
        "scores": float(scores.max()),
        "own-blocks": int(own.sum()),
        "blocks": int(others.sum()),
        "attention": float(merged.max()),
    }


def _judge_all(truth: Layer, step: Step, heads: Tensor) -> dict[str, float]:
    """Return the figure of attention to all keys."""
    import torch

    errors = []
    for number, row in _rows(step):
        position = int(step.tensors["positions"][row])
        blocks = torch.arange(position // BLOCK + 1, device=heads.device)
        table = torch.tensor(step.tables[number], device=heads.device)
        at = torch.tensor([[position]], device=heads.device)
        with torch.device(heads.device):
            wanted = _mixed(truth, heads[row, :HEADS], table, blocks, at)
        errors.append(_error(step.tensors["merged"][:, row], wanted))
    return {"attention": max(errors)}


def _differing(a: Tensor, b: Tensor) -> int:
    import torch

    kinds = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
    kind = kinds.get(a.dtype, a.dtype)
    return int(a.view(kind).ne(b.view(kind)).sum())


def _rows(step: Step) -> list[tuple[int, int]]:
    return [(n, r) for n, (_, _, own) in enumerate(step.spans) for r in range(own.start, own.stop)]


def _heads(layer: Layer, step: Step) -> Tensor:
    """Return all heads [rows, heads, dim], normed and turned, by single operations on the CPU."""
    import torch

    names = ("qkv_sums", "qkv_squares", "rotary")
    t = {name: step.tensors[name].cpu() for name in names}
    total, squares = torch.zeros(()), torch.zeros(())
    for part, square in zip(t["qkv_sums"], t["qkv_squares"], strict=True):
        total, squares = total + part, squares + square
    factor = _inverse_root(squares / SHAPE.hidden)
    x = (factor[:, None] * total).view(step.rows, -1, DIM)
    turned, values = x[:, :-1], x[:, -1:]
    lanes = turned.square().view(step.rows, -1, 4, 32)
    sums = lanes[:, :, 0] + lanes[:, :, 1] + lanes[:, :, 2] + lanes[:, :, 3]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    scale = _inverse_root(sums / DIM)
    turned = scale * turned * layer.weights["head_norm"].cpu()
    half = SHAPE.rotary_dim // 2
    cos, sin = t["rotary"][:, None, :half], t["rotary"][:, None, half:]
    a, b = turned[..., :half], turned[..., half : 2 * half]
    turned = torch.cat([a * cos - b * sin, b * cos + a * sin, turned[..., 2 * half :]], -1)
    return torch.cat([turned, values], 1).to(step.tensors["qkv_sums"].device)


def _inverse_root(mean: Tensor) -> Tensor:
    import torch

    # By float64: torch's own float32 root is one off in its last bit for every sixth number.
    return 1 / (mean + torch.tensor(SHAPE.norm_eps)).double().sqrt().float()


def _written(before: Layer, heads: Tensor, step: Step) -> Layer:
    """Return the layer with the rows' own keys, values and index keys in its caches."""
    import torch

    stores = [store.clone() for store in before.stores]
    slots = step.tensors["slots"][: step.live].long()
    kinds = SHAPE.head_kinds(step.kind != "dense")
    for store, kind in zip(stores, ("k", "v", "ik"), strict=True):
        if not kinds[kind]:
            continue
        head = kinds[kind].start
        # Encoded on the CPU: torch divides by a constant otherwise on a GPU.
        small = Store.unwritten(store.kind, store.scaled, 1, "cpu")
        small.write(torch.arange(step.live), heads[:, head].cpu())
        for part, new in zip(store.parts(), small.parts(), strict=True):
            part.flatten(0, 1)[slots] = new.flatten(0, 1)[: step.live].to(part.device)
    return Layer(before.weights, *stores)


def _row(
    truth: Layer, step: Step, heads: Tensor, number: int, row: int
) -> tuple[float, int, int, float]:
    """Return a row's findings: error of scores, whether its choice is not that of its scores,
    blocks that are not the truth's, error of the output for its own choice."""
    import torch

    from infx.engine.model.attention import block_scores, choose_blocks

    position = int(step.tensors["positions"][row])
    own, topk = position // BLOCK + 1, SHAPE.topk_blocks
    table = torch.tensor(step.tables[number][:own], device=heads.device)
    at = torch.tensor([[position]], device=heads.device)
    got = step.tensors["chosen"][row].long()
    got = got[got >= 0]
    with torch.device(heads.device):
        index = truth.index.read(table)[None]
        scores = block_scores(heads[row, IQ_HEAD][None, None, None], index, at, BLOCK)
        mine = step.tensors["scores"][row, :own][None, None, None]
        wanted, by_mine = (
            choose_blocks(by, at, BLOCK, topk)[0, 0, 0].sort().values.tolist()
            for by in (scores, mine)
        )
        mixed = _mixed(truth, heads[row, :HEADS], table, got, at)
    return (
        _error(mine, scores),
        got.tolist() != by_mine,
        len(set(got.tolist()) ^ set(wanted)),
        _error(step.tensors["merged"][:, row], mixed),
    )


def _mixed(truth: Layer, queries: Tensor, table: Tensor, chosen: Tensor, at: Tensor) -> Tensor:
    """Return attention [heads, dim] of ``queries`` over ``chosen`` blocks of the pages ``table``.

    A key that the row does not see is NaN where nobody wrote it: no probability of ours may be.
    """
    import torch

    from infx.engine.model.attention import sparse_attention
    from infx.engine.quant import fp8_round

    queries = fp8_round(queries) if truth.keys.kind == "mxfp4" else queries
    keys, values = (
        torch.nan_to_num(store.read(table[chosen]), 0.0)[None, None, None]
        for store in (truth.keys, truth.values)
    )
    return sparse_attention(queries[None, None], keys, values, at, chosen[None, None, None])[0, 0]


def _error(ours: Tensor, truth: Tensor) -> float:
    error = ((ours - truth).norm() / truth.norm()).item()
    return error if math.isfinite(error) else math.inf
