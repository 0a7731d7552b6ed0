"""Attention over whole sequences: choice of blocks, attention over them, the indexer's loss.

Shapes: q [b, t, heads, dim], k and v [b, t, groups, dim], index q [b, t, groups, dim], index k
[b, t, 1, dim]; a selection is bool [b, groups, t, blocks].
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from infx.engine.train.formulas import form

__all__ = ["attend", "index_loss", "select"]

SEQUENCES = 16
"""Sequences whose block scores are in memory at once: scores are [t, t] a head."""


def select(index_q: Tensor, index_k: Tensor, block: int, topk: int, fast: bool) -> Tensor:
    """Return the ``topk`` best blocks of each row and group, its own block always among them."""
    parts = zip(index_q.split(SEQUENCES), index_k.split(SEQUENCES), strict=True)
    return torch.cat([_chosen(form(_block_scores, fast)(q, k, block), topk) for q, k in parts])


def _chosen(scores: Tensor, topk: int) -> Tensor:
    best = scores.topk(min(topk, scores.shape[-1]), -1)
    none = torch.zeros_like(scores, dtype=torch.bool)
    return none.scatter_(-1, best.indices, best.values > -torch.inf)


def _block_scores(index_q: Tensor, index_k: Tensor, block: int) -> Tensor:
    """Return [b, groups, t, blocks]: a block's largest q·k, inf for a row's own, -inf unseen."""
    at = torch.arange(index_q.shape[1], device=index_q.device)
    scores = index_q.transpose(1, 2) @ index_k.permute(0, 2, 3, 1)
    scores = torch.where(at[None, :] > at[:, None], -torch.inf, scores)
    best = scores.unflatten(-1, (-1, block)).amax(-1)
    return torch.where(_own(at, at, block), torch.inf, best)


def _own(rows: Tensor, at: Tensor, block: int) -> Tensor:
    """Return bool [rows, blocks]: is the block the row's own."""
    return (at[None, ::block] // block) == (rows[:, None] // block)


def index_loss(
    q: Tensor,
    k: Tensor,
    index_q: Tensor,
    index_k: Tensor,
    rows: Tensor,
    block: int,
    topk: int,
) -> tuple[Tensor, Tensor]:
    """Return the indexer's loss at ``rows`` [r], and how much of the goal its choice covers.

    Goal: the attention's mass of each block, the mean of a group's heads, own block left out. The
    loss is the KL divergence of the softmax of block scores from it, rows weighed by the mass
    that is not their own block's.
    """
    at = torch.arange(k.shape[1], device=q.device)
    unseen, own = at[None, :] > rows[:, None], _own(rows, at, block)
    mass = _block_mass(q, k, rows, unseen, own, block)
    total = mass.sum(-1, keepdim=True)
    goal = mass / total.clamp(min=1e-9)
    weight = total[..., 0].clamp(min=0.02) * (rows >= block)
    scores = (index_q.index_select(1, rows).transpose(1, 2) @ index_k.permute(0, 2, 3, 1)).float()
    scores = torch.where(unseen, -torch.inf, scores).unflatten(-1, (-1, block)).amax(-1)
    scores = scores * q.shape[-1] ** -0.5
    scores = torch.where(own | (scores == -torch.inf), -1e4, scores)
    divergence = (goal * ((goal + 1e-9).log() - scores.log_softmax(-1))).sum(-1)
    best = scores.detach().topk(min(topk, scores.shape[-1]) - 1, -1).indices
    covered = (goal.gather(-1, best).sum(-1) * weight).sum() / weight.sum()
    return (divergence * weight).sum() / weight.sum(), covered


@torch.no_grad()
def _block_mass(
    q: Tensor, k: Tensor, rows: Tensor, unseen: Tensor, own: Tensor, block: int
) -> Tensor:
    """Return the attention's mass [b, groups, r, blocks], zero in the row's own block."""
    grouped = q.index_select(1, rows).unflatten(2, (k.shape[2], -1)).permute(0, 2, 3, 1, 4)
    scores = (grouped @ k.permute(0, 2, 3, 1)[:, :, None]).float() * q.shape[-1] ** -0.5
    share = torch.where(unseen, -torch.inf, scores).softmax(-1).mean(2)
    return torch.where(own, 0.0, share.unflatten(-1, (-1, block)).sum(-1))


def attend(
    q: Tensor, k: Tensor, v: Tensor, chosen: Tensor | None, block: int, fast: bool
) -> Tensor:
    """Return [b, t, heads · dim]: causal attention over the ``chosen`` blocks (None: all)."""
    attention = _flex if fast else _plain
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    return attention(q, k, v, chosen, block).transpose(1, 2).flatten(2)


def _plain(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor | None, block: int) -> Tensor:
    at = torch.arange(q.shape[2], device=q.device)
    seen = (at[None, :] <= at[:, None]).expand(1, 1, -1, -1)
    if chosen is not None:
        whole = chosen.repeat_interleave(block, -1)[..., : len(at)] & seen
        seen = whole.repeat_interleave(q.shape[1] // k.shape[1], 1)
    return scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def _flex(q: Tensor, k: Tensor, v: Tensor, chosen: Tensor | None, block: int) -> Tensor:
    """Return attention by one kernel whose backward adds in a fixed order, unlike torch's own."""
    per = q.shape[1] // k.shape[1]

    def score(value: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        assert chosen is not None
        return torch.where(chosen[b, h // per, i, j // block], value, -float("inf"))

    run, mask = _flex_kernel(), _causal(q.shape[2], q.device)
    changed = None if chosen is None else score
    parts = (x.contiguous() for x in (q, k, v))
    mixed: Tensor = run(*parts, score_mod=changed, block_mask=mask, enable_gqa=True)
    return mixed


@functools.cache
def _flex_kernel() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


@functools.cache
def _causal(length: int, device: torch.device) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    return create_block_mask(
        lambda b, h, i, j: j <= i, None, None, length, length, device=str(device)
    )
