"""What the attention half must give: infx's reference model, and the plan's arithmetic for caches.

Scores, chosen blocks and outputs are those of `infx.engine.model.attention`, in float32. Bytes of
caches and queries must be equal bit for bit to the order of operations that the plan gives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.model.attention import block_scores, choose_blocks, sparse_attention
from infx.engine.mono.cuda.attention_world import BLOCK, DIM, HEADS, SHAPE, Store, World
from infx.engine.quant import fp8_round

__all__ = ["Findings", "compare"]

K_HEAD, IQ_HEAD, IK_HEAD, V_HEAD = HEADS, HEADS + 1, HEADS + 2, HEADS + 3


@dataclass(frozen=True, slots=True)
class Findings:
    """What `compare` found; errors are ‖ours - truth‖ / ‖truth‖, the largest of any row."""

    queries_equal: bool
    cache_equal: bool
    scores_error: float
    choice_of_own_scores: bool
    choice_differs: int
    merged_error: float
    attended_error: float
    pads_zero: bool

    @property
    def good(self) -> bool:
        """Whether all is as it must be; bf16 keeps 2^-9 of a number."""
        exact = self.queries_equal and self.cache_equal and self.choice_of_own_scores
        near = self.scores_error < 1e-4 and self.merged_error < 2**-7
        near &= self.attended_error < 2**-10
        return exact and near and self.pads_zero and self.choice_differs == 0


def compare(before: World, after: World) -> Findings:
    """Return how what kernels left in ``after`` differs from what ``before`` leads to."""
    heads = _heads(before)
    live = sum(asked.rows for asked in before.requests)
    truth = _written(before, heads[:live], live)
    ours = after.tensors
    queries = heads[:live, :HEADS].transpose(0, 1)
    stores = zip(truth.stores, after.stores, strict=True)
    parts = [pair for x, y in stores for pair in zip(x.parts(), y.parts(), strict=True)]
    attended = ours["attended"].float() * ours["attended_back"][..., None]
    rows = [_row(truth, ours, heads, number, row) for number, row in _rows(before)]
    return Findings(
        queries_equal=torch.equal(queries, ours["queries"][:, :live]),
        cache_equal=all(_same(a, b) for a, b in parts),
        scores_error=max((row[0] for row in rows), default=0.0),
        choice_of_own_scores=all(row[1] for row in rows),
        choice_differs=sum(row[2] for row in rows),
        merged_error=max((row[3] for row in rows), default=0.0),
        attended_error=_error(attended[:, :live], ours["merged"][:, :live]) if live else 0.0,
        pads_zero=not (ours["merged"][:, live:].any() or attended[:, live:].any()),
    )


def _same(a: Tensor, b: Tensor) -> bool:
    kinds = {torch.bfloat16: torch.int16, torch.float32: torch.int32}
    kind = kinds.get(a.dtype, a.dtype)
    return torch.equal(a.view(kind), b.view(kind))


def _rows(world: World) -> list[tuple[int, int]]:
    return [(n, r) for n, (_, _, own) in enumerate(world.spans) for r in range(own.start, own.stop)]


def _heads(world: World) -> Tensor:
    """Return all heads [rows, heads, dim], normed and turned, by single operations on the CPU."""
    t = {name: tensor.cpu() for name, tensor in world.tensors.items()}
    total, squares = torch.zeros(()), torch.zeros(())
    for part, square in zip(t["qkv_sums"], t["qkv_squares"], strict=True):
        total, squares = total + part, squares + square
    factor = _inverse_root(squares / SHAPE.hidden)
    x = (factor[:, None] * total).view(world.rows, -1, DIM)
    turned, values = x[:, :-1], x[:, -1:]
    lanes = turned.square().view(world.rows, -1, 4, 32)
    sums = lanes[:, :, 0] + lanes[:, :, 1] + lanes[:, :, 2] + lanes[:, :, 3]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    scale = _inverse_root(sums / DIM)
    turned = scale * turned * t["head_norm"]
    half = SHAPE.rotary_dim // 2
    cos, sin = t["rotary"][:, None, :half], t["rotary"][:, None, half:]
    a, b = turned[..., :half], turned[..., half : 2 * half]
    turned = torch.cat([a * cos - b * sin, b * cos + a * sin, turned[..., 2 * half :]], -1)
    return torch.cat([turned, values], 1).to(world.tensors["qkv_sums"].device)


def _inverse_root(mean: Tensor) -> Tensor:
    # By float64: torch's own float32 root is one off in its last bit for every sixth number.
    return 1 / (mean + torch.tensor(SHAPE.norm_eps)).double().sqrt().float()


def _written(before: World, heads: Tensor, live: int) -> World:
    """Return the world with the rows' own keys, values and index keys in its caches."""
    stores = [store.clone() for store in before.stores]
    slots = before.tensors["slots"][:live].long()
    for store, head in zip(stores, (K_HEAD, V_HEAD, IK_HEAD), strict=True):
        # Encoded on the CPU: torch divides by a constant otherwise on a GPU.
        small = Store.unwritten(store.kind, store.scaled, 1, "cpu")
        small.write(torch.arange(live), heads[:, head].cpu())
        for part, new in zip(store.parts(), small.parts(), strict=True):
            part.flatten(0, 1)[slots] = new.flatten(0, 1)[:live].to(part.device)
    return before.with_stores(stores)


def _row(
    truth: World, ours: dict[str, Tensor], heads: Tensor, number: int, row: int
) -> tuple[float, bool, int, float]:
    """Return a row's errors: of scores, whether the choice is that of its scores, others chosen
    than the truth's, of the output for our choice."""
    device = heads.device
    _, pages, _ = truth.spans[number]
    position = int(truth.tensors["positions"][row])
    own, topk = position // BLOCK + 1, SHAPE.topk_blocks
    table = torch.tensor(pages[:own], device=device)
    at = torch.tensor([[position]], device=device)
    with torch.device(device):
        index = truth.index.read(table)[None]
        scores = block_scores(heads[row, IQ_HEAD][None, None, None], index, at, BLOCK)
        mine = ours["scores"][row, :own][None, None, None]
        expected = choose_blocks(scores, at, BLOCK, topk)[0, 0, 0].sort().values
        by_mine = choose_blocks(mine, at, BLOCK, topk)[0, 0, 0].sort().values
        got = ours["chosen"][row].long()
        got = got[got >= 0]
        queries = heads[row, :HEADS][None, None]
        if truth.keys.kind == "mxfp4":
            queries = fp8_round(queries)
        keys, values = (
            torch.nan_to_num(store.read(table[got]), 0.0)[None, None, None]
            for store in (truth.keys, truth.values)
        )
        chosen = got[None, None, None]
        mixed = sparse_attention(queries, keys, values, at, chosen)[0, 0]
    others = len(set(got.tolist()) ^ set(expected.tolist()))
    merged = ours["merged"][:, row]
    # A key that the row does not see is NaN where nobody wrote it: no score of ours may be.
    return (
        _error(mine[..., :own], scores[..., :own]),
        got.tolist() == by_mine.tolist(),
        others,
        _error(merged, mixed),
    )


def _error(ours: Tensor, truth: Tensor) -> float:
    error = ((ours - truth).norm() / truth.norm()).item()
    return error if math.isfinite(error) else math.inf
