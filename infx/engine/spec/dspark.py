"""The DSpark-shaped draft: one pass over a block guesses all K tokens.

The block stands at positions p … p+K: the newest token, whose target state is not known yet, and K
masks (one learned vector). Its rows see each other both ways, and the *context*: keys and values of
each layer made from the target's states at positions j < p, at most `WINDOW` back, by the layer's
own projection of norm(fc(aux)). Mask d's logits guess token p + d + 1; a low-rank Markov head adds
markov_in[token before] @ markov_out, so the guesses are chosen one after another from one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.model.layers import Rotary, Turn, gemma_norm, rotate
from infx.engine.scheduler import Step
from infx.engine.shapes import ModelConfig

__all__ = ["WINDOW", "DsparkDrafter"]

# Sliding window of the public DSpark draft's attention (tokens).
WINDOW = 1024


@dataclass(frozen=True, slots=True)
class _Blocks:
    """S blocks: their ``positions`` [S, K+1], pages of their windows [S, n], keys ``seen`` [S, T].

    T = n · page tokens + K+1: the context, then the block itself.
    """

    positions: Tensor
    turn: Turn
    pages: Tensor
    seen: Tensor


class DsparkDrafter:
    """The draft: ``weights`` as `weights.draft_weights` names them, ``embed`` the target's.

    Proposes ``k`` ids below ``vocabulary``.
    """

    def __init__(
        self,
        shape: ModelConfig,
        weights: Mapping[str, Tensor],
        embed: Tensor,
        vocabulary: int,
        k: int,
    ) -> None:
        self._shape, self._weights, self._embed, self._k = shape, weights, embed, k
        self._layers = sum(name.endswith(".qkv") for name in weights)
        self._head = weights["head"][:, :vocabulary]
        self._markov_out = weights["markov_out"][:, :vocabulary]
        self._rotary = Rotary(shape.head_dim, shape.head_dim, shape.rope_theta, shape.farthest)

    def observe(self, aux: Tensor, batch: Batch, cache: KvCache) -> None:
        """Write the context keys and values of the batch's real rows, for every layer."""
        shape = self._shape
        known = self._normed(aux[batch.live] @ self._weights["fc"], "feature_norm")
        turn = self._rotary.at(batch.positions[batch.live])
        for layer in range(self._layers):
            projection = self._weights[f"layers.{layer}.qkv"][:, shape.heads * shape.head_dim :]
            both = (known @ projection).view(len(known), 2 * shape.kv_heads, shape.head_dim)
            keys, values = both.chunk(2, dim=1)
            cache.write(shape.num_layers + layer, batch.slots, rotate(keys, turn), values)

    def propose(self, step: Step, emitted: Sequence[list[int]], cache: KvCache) -> list[list[int]]:
        """Return K drafts for each work that chose a token; the whole step is one pass."""
        going = [number for number, work in enumerate(step.work) if emitted[number]]
        drafts: list[list[int]] = [[] for _ in emitted]
        if not going:
            return drafts
        tokens = torch.tensor([emitted[number][-1] for number in going])
        blocks = self._blocks(step, emitted, going, cache.block)
        logits = self._normed(self._pass(tokens, blocks, cache), "norm") @ self._head
        for number, chosen in zip(going, self._choose(tokens, logits), strict=True):
            drafts[number] = chosen
        return drafts

    def _blocks(
        self, step: Step, emitted: Sequence[list[int]], going: Sequence[int], page: int
    ) -> _Blocks:
        starts, tables = [], []
        for number in going:
            work, decode = step.work[number], number < len(step.decodes)
            at = work.start + (len(emitted[number]) if decode else len(work.tokens))
            starts.append(at)
            tables.append(work.request.pages[_first_page(at, page) : (at - 1) // page + 1])
        reach = max(map(len, tables))
        start = torch.tensor(starts)[:, None]
        firsts = torch.tensor([_first_page(at, page) * page for at in starts])[:, None]
        context = firsts + torch.arange(reach * page)
        seen = (context < start) & (context >= start - WINDOW)
        inside = seen.new_ones(len(starts), self._k + 1)
        positions = start + torch.arange(self._k + 1)
        return _Blocks(
            positions=positions,
            turn=self._rotary.at(positions.flatten()),
            pages=torch.tensor([[*table, *[0] * (reach - len(table))] for table in tables]),
            seen=torch.cat([seen, inside], dim=1),
        )

    def _pass(self, tokens: Tensor, blocks: _Blocks, cache: KvCache) -> Tensor:
        """Return the masks' residual stream [S, K, hidden] after the layers."""
        masks = self._weights["mask"].expand(len(tokens), self._k, -1)
        stream = torch.cat([self._embed[tokens][:, None], masks], dim=1)
        for layer in range(self._layers):
            at = f"layers.{layer}."
            x = self._normed(stream, at + "attention_norm")
            stream = stream + self._attention(x, layer, blocks, cache)
            inner = self._normed(stream, at + "mlp_norm") @ self._weights[at + "up"]
            gate, up = inner.chunk(2, dim=-1)
            stream = stream + (silu(gate) * up) @ self._weights[at + "down"]
        return stream[:, 1:]

    def _attention(self, x: Tensor, layer: int, blocks: _Blocks, cache: KvCache) -> Tensor:
        shape, at = self._shape, f"layers.{layer}."
        flat = (x @ self._weights[at + "qkv"]).view(x.shape[0] * x.shape[1], -1, shape.head_dim)
        turned = rotate(flat[:, : -shape.kv_heads], blocks.turn)
        rows = torch.cat([turned, flat[:, -shape.kv_heads :]], dim=1)
        near = rows.view(*x.shape[:2], -1, shape.head_dim).transpose(1, 2)
        sizes = [shape.heads, shape.kv_heads, shape.kv_heads]
        queries, keys, values = torch.split(near, sizes, dim=1)
        pages = blocks.pages[:, None].expand(-1, shape.kv_heads, -1)
        far_keys, far_values = cache.read(shape.num_layers + layer, pages)
        mixed = scaled_dot_product_attention(
            cache.query(queries),
            torch.cat([far_keys, keys], dim=2),
            torch.cat([far_values, values], dim=2),
            attn_mask=blocks.seen[:, None, None],
            enable_gqa=True,
        )
        return mixed.transpose(1, 2).flatten(2) @ self._weights[at + "o"]

    def _choose(self, before: Tensor, logits: Tensor) -> list[list[int]]:
        """Return [S][K] ids, each the best after the one before it; ``logits`` [S, K, ids]."""
        chosen = []
        for depth in range(self._k):
            markov = self._weights["markov_in"][before] @ self._markov_out
            before = (logits[:, depth] + markov).argmax(-1)
            chosen.append(before)
        drafts: list[list[int]] = torch.stack(chosen, dim=1).tolist()
        return drafts

    def _normed(self, x: Tensor, name: str) -> Tensor:
        return gemma_norm(x, self._weights[name], self._shape.rms_norm_eps)


def _first_page(position: int, page: int) -> int:
    """Return the page that holds the first key which a block at ``position`` sees."""
    return max(position - WINDOW, 0) // page
