"""Attention over all keys against torch: bytes of caches, bit by bit, and outputs.

``given`` has tensors by field of ``LayerArgs``; caches are stores of any kind. Heads follow the
order of operations that the plan gives, so that caches are equal; outputs are float32's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.attention_world import Store
from infx.engine.mono.shape import SHAPES

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["judge_full"]

SHAPE = SHAPES["m3_tp4_rank"]
HEADS, DIM, BLOCK = SHAPE.heads, SHAPE.head_dim, SHAPE.block
K_HEAD, V_HEAD = HEADS, HEADS + 1


def judge_full(
    given: Mapping[str, Tensor],
    before: tuple[Store, Store],
    after: tuple[Store, Store],
) -> dict[str, float]:
    """Return what is wrong after the stage ran: ``before`` and ``after`` are keys and values.

    ``caches`` and ``pads`` count numbers with wrong bits (pads: that are not 0); ``attention`` and
    ``attended`` are the largest ||d|| / ||truth|| of a row.
    """
    heads, live = _heads(given), (given["batch_ids"] >= 0).nonzero()[:, 0]
    truth = [store.clone() for store in before]
    for store, head in zip(truth, (K_HEAD, V_HEAD), strict=True):
        _write(store, given["slots"][live].long(), heads[live, head])
    pairs = [
        pair
        for right, found in zip(truth, after, strict=True)
        for pair in zip(right.parts(), found.parts(), strict=True)
    ]
    attended = given["attended"].float() * given["attended_back"][..., None]
    errors = [_row(given, heads, truth, attended, int(row)) for row in live]
    pads = (given["batch_ids"] < 0).nonzero()[:, 0]
    return {
        "caches": sum(_differing(*pair) for pair in pairs),
        "attention": max((error for error, _ in errors), default=0.0),
        "attended": max((error for _, error in errors), default=0.0),
        "pads": sum(int(x[:, pads].ne(0).sum()) for x in (given["merged"], attended)),
    }


def _row(
    given: Mapping[str, Tensor], heads: Tensor, truth: list[Store], attended: Tensor, row: int
) -> tuple[float, float]:
    """Return a row's errors: of the output, and of what the output projection reads."""
    import torch

    from infx.engine.quant import fp8_round

    seen = int(given["positions"][row]) + 1
    pages = given["pages"][row, : -(-seen // BLOCK)].long()
    keys, values = (store.read(pages)[:seen] for store in truth)
    queries = heads[row, :HEADS]
    if truth[0].kind == "mxfp4":
        queries = fp8_round(queries)
    wanted = torch.softmax(queries @ keys.T / math.sqrt(DIM), -1) @ values
    merged = given["merged"][:, row]
    return _error(merged, wanted), _error(attended[:, row], merged)


def _write(store: Store, slots: Tensor, vectors: Tensor) -> None:
    """Keep vectors as kernels must: encoded on the CPU, as torch divides otherwise on a GPU."""
    import torch

    count = len(slots)
    small = Store.unwritten(store.kind, store.scaled, 1, "cpu")
    small.write(torch.arange(count), vectors.cpu())
    for part, new in zip(store.parts(), small.parts(), strict=True):
        part.flatten(0, 1)[slots] = new.flatten(0, 1)[:count].to(part.device)


def _heads(given: Mapping[str, Tensor]) -> Tensor:
    """Return all heads [rows, heads, dim], normed and turned, by single operations on the CPU."""
    import torch

    names = ("qkv_sums", "qkv_squares", "head_norm", "rotary")
    t = {name: given[name].cpu() for name in names}
    total, squares = torch.zeros(()), torch.zeros(())
    for part, square in zip(t["qkv_sums"], t["qkv_squares"], strict=True):
        total, squares = total + part, squares + square
    x = (_inverse_root(squares / SHAPE.hidden)[:, None] * total).view(len(total), -1, DIM)
    turned, values = x[:, :-1], x[:, -1:]
    lanes = turned.square().unflatten(-1, (4, 32))
    sums = lanes[:, :, 0] + lanes[:, :, 1] + lanes[:, :, 2] + lanes[:, :, 3]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    turned = _inverse_root(sums / DIM) * turned * t["head_norm"]
    half = SHAPE.rotary_dim // 2
    cos, sin = t["rotary"][:, None, :half], t["rotary"][:, None, half:]
    a, b, rest = turned[..., :half], turned[..., half : 2 * half], turned[..., 2 * half :]
    turned = torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)
    return torch.cat([turned, values], 1).to(given["qkv_sums"].device)


def _inverse_root(mean: Tensor) -> Tensor:
    import torch

    # By float64: torch's own float32 root is one off in its last bit for every sixth number.
    return 1 / (mean + torch.tensor(SHAPE.norm_eps)).double().sqrt().float()


def _differing(a: Tensor, b: Tensor) -> int:
    import torch

    kinds = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
    kind = kinds.get(a.dtype, a.dtype)
    return int(a.view(kind).ne(b.view(kind)).sum())


def _error(ours: Tensor, truth: Tensor) -> float:
    error = ((ours - truth).norm() / truth.norm()).item()
    return error if math.isfinite(error) else math.inf
