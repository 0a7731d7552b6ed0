"""Attention over cached keys: full, and over the blocks that an indexer chooses.

All functions work on one group, a rectangle of S spans x Q rows: queries [S, Q, heads, dim],
positions [S, Q], and keys and values as the cache reads them, float32 and in the order of their
pages. A row at position t sees keys j <= t, its own at least, so no softmax is empty.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["block_scores", "choose_blocks", "full_attention", "pages_of", "sparse_attention"]


def full_attention(queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor) -> Tensor:
    """Return [S, Q, heads, dim]: softmax attention over all keys up to t.

    ``keys`` and ``values`` [S, kv heads, tokens, dim] begin at position 0.
    """
    seen = torch.arange(keys.shape[2]) <= positions[..., None]
    # torch's own kernel: 35 ms where the written-out softmax took 127 (512 rows, 2048 keys).
    mixed = scaled_dot_product_attention(
        queries.transpose(1, 2), keys, values, attn_mask=seen[:, None], enable_gqa=True
    )
    return mixed.transpose(1, 2)


def block_scores(
    index_queries: Tensor, index_keys: Tensor, positions: Tensor, block: int
) -> Tensor:
    """Return [S, G, Q, blocks]: for each index head the largest q·k of a block's visible tokens.

    ``index_queries`` [S, Q, G, dim]; ``index_keys`` [S, blocks * block, dim] begin at position 0. A
    block without a visible token scores -inf.
    """
    spans, rows, heads, dim = index_queries.shape
    flat = index_queries.transpose(1, 2).reshape(spans, heads * rows, dim)
    scores = (flat @ index_keys.transpose(1, 2)).view(spans, heads, rows, -1)
    unseen = torch.arange(index_keys.shape[1]) > positions[..., None]
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


def pages_of(table: Tensor, chosen: Tensor) -> Tensor:
    """Return the pages [S, G, Q, k] of ``chosen`` blocks [S, G, Q, k]; ``table`` is [S, pages]."""
    return table[:, None, None].expand(*chosen.shape[:3], -1).gather(-1, chosen)


def sparse_attention(
    queries: Tensor, keys: Tensor, values: Tensor, positions: Tensor, chosen: Tensor
) -> Tensor:
    """Return [S, Q, heads, dim]: attention of each kv group over its ``chosen`` blocks.

    ``chosen`` [S, G, Q, k] are block numbers of the span, one set for each kv head; ``keys`` and
    ``values`` [S, G, Q, k * block, dim] are those blocks'.
    """
    spans, rows, heads, dim = queries.shape
    kv_heads, block = keys.shape[1], keys.shape[3] // chosen.shape[3]
    grouped = queries.view(spans, rows, kv_heads, heads // kv_heads, dim).transpose(1, 2)
    scores = (grouped / math.sqrt(dim)) @ keys.transpose(-1, -2)
    at = (chosen[..., None] * block + torch.arange(block)).flatten(3, 4)
    scores.masked_fill_((at > positions[:, None, :, None])[..., None, :], -torch.inf)
    mixed = torch.softmax(scores, dim=-1) @ values
    return mixed.transpose(1, 2).reshape(spans, rows, heads, dim)
