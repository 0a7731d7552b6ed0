"""DSpark's training form: one pass over [known token, masks] guesses a block of tokens.

The form is that of `infx.engine.spec.dspark`: a low-rank Markov head adds what the token before
says about each guess. Trained with the true token before; served with the guess before.
"""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from infx.engine.shapes import DSPARK_LAYERS, DSPARK_RANK, ModelConfig
from infx.engine.spec.dspark import WINDOW
from infx.engine.train.draft import Draft
from infx.engine.train.experts import rows_of
from infx.engine.train.layer import Maker

__all__ = ["Block"]


class BlockLayer(nn.Module):
    """Attention over the context's keys and the whole block, then a gated MLP."""

    def __init__(self, shape: ModelConfig, make: Maker) -> None:
        super().__init__()
        hidden, heads = shape.hidden_size, shape.heads + 2 * shape.kv_heads
        self.attention_norm, self.mlp_norm = make.zeros(hidden), make.zeros(hidden)
        self.qkv = make.linear(hidden, heads * shape.head_dim)
        self.o = make.zeros(shape.heads * shape.head_dim, hidden)
        self.up = make.linear(hidden, 2 * shape.dense_size)
        self.down = make.zeros(shape.dense_size, hidden)


class Block(Draft):
    """Two such layers; the block is the known token and seven masks of one learned vector."""

    depth = 7

    def __init__(self, shape: ModelConfig, embed: Tensor, scale: Tensor, seed: int) -> None:
        make = Maker(seed)
        super().__init__(shape, embed, scale, make)
        hidden, vocabulary = shape.hidden_size, shape.vocab_size
        self.mask, self.feature_norm = make.normal(hidden, std=0.5), make.zeros(hidden)
        self.markov_in = make.normal(vocabulary, DSPARK_RANK, std=0.3)
        self.markov_out = make.zeros(DSPARK_RANK, vocabulary)
        self.layers = nn.ModuleList(BlockLayer(shape, make) for _ in range(DSPARK_LAYERS))

    @staticmethod
    def layers_tapped(shape: ModelConfig) -> tuple[int, ...]:
        """See `Draft.layers_tapped`."""
        return shape.block_layers

    def forward(self, tokens: Tensor, taps: Tensor, rows: Tensor) -> Tensor:
        """See `Draft.forward`."""
        known = self.normed(self.features(taps), self.feature_norm)
        places = rows[..., None] + torch.arange(self.depth + 1, device=rows.device)
        first = self.embed[tokens.gather(1, rows)][:, :, None]
        x = torch.cat([first, self.mask.expand(*rows.shape, self.depth, -1)], 2)
        for layer in self.layers:
            assert isinstance(layer, BlockLayer)
            x = x + self._attention(layer, x, known, places) @ layer.o
            gate, up = (self.normed(x, layer.mlp_norm) @ layer.up).chunk(2, -1)
            x = x + (silu(gate) * up) @ layer.down
        guesses = self.normed(x[:, :, 1:], self.norm) @ self.head
        before = places[..., :-1].clamp(max=tokens.shape[1] - 1).flatten(1)
        previous = tokens.gather(1, before).view_as(places[..., :-1])
        guesses = guesses + rows_of(previous, self.markov_in) @ self.markov_out
        return guesses.permute(2, 0, 1, 3)

    def _attention(self, layer: BlockLayer, x: Tensor, known: Tensor, places: Tensor) -> Tensor:
        """Return [b, r, block, heads · dim] of blocks ``x`` at ``places`` [b, r, block]."""
        s, size = self.shape, self.shape.head_dim**-0.5
        counts = [s.heads, s.kv_heads, s.kv_heads]
        at = torch.arange(known.shape[1], device=known.device)
        far_k, far_v = self.heads(known @ layer.qkv[:, s.heads * s.head_dim :]).chunk(2, -2)
        far_k = self.turned(far_k, at.expand(known.shape[:2]))
        x = self.normed(x, layer.attention_norm)
        q, k, v = self.heads(x @ layer.qkv).split(counts, -2)
        q, k = self.turned(q, places).unflatten(3, (s.kv_heads, -1)), self.turned(k, places)
        rows = places[..., :1]
        seen = ((at < rows) & (at >= rows - WINDOW))[:, None, None, :, None]
        far = torch.einsum("brsgpd,btgd->bgprst", q, far_k).float() * size
        near = torch.einsum("brsgpd,brugd->bgprsu", q, k).float() * size
        scores = torch.cat([far.masked_fill(~seen, -torch.inf), near], -1)
        share = scores.softmax(-1).to(v.dtype)
        mixed = torch.einsum("bgprst,btgd->brsgpd", share[..., : len(at)], far_v)
        mixed = mixed + torch.einsum("bgprsu,brugd->brsgpd", share[..., len(at) :], v)
        return mixed.flatten(3)
