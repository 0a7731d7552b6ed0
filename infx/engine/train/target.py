"""The target's training form: whole sequences at once, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from infx.engine.model.layers import turn_tables
from infx.engine.shapes import ModelConfig
from infx.engine.train.attention import attend, index_loss, select
from infx.engine.train.experts import rows_of
from infx.engine.train.formulas import form, norm
from infx.engine.train.layer import Heads, Layer, Maker, Mode
from infx.engine.train.rounding import as_held

__all__ = ["Passed", "Target", "held"]

Keep = Callable[[int, Heads], None]


@dataclass(frozen=True, slots=True)
class Passed:
    """What a pass gives: the last residual stream [b, t, hidden]; the states after the tapped
    layers [b, t, taps · hidden]; loss of the indexers and how much of the attention's blocks each
    layer's choice covers (only when rows were asked for); rows of each expert by layer."""

    stream: Tensor
    taps: Tensor
    index_loss: Tensor
    covered: Tensor
    loads: dict[int, Tensor]


class Target(nn.Module):
    """The model of ``shape`` with new weights from ``seed``."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: ModelConfig, seed: int) -> None:
        super().__init__()
        self.shape, make = shape, Maker(seed)
        hidden, vocabulary = shape.hidden_size, shape.vocab_size
        self.embed = make.normal(vocabulary, hidden, std=0.5)
        self.norm, self.head = make.zeros(hidden), make.normal(hidden, vocabulary, std=0.01)
        self.layers = nn.ModuleList(Layer(shape, n, make) for n in range(shape.num_layers))
        tables = turn_tables(shape.rotary_dim, shape.head_dim, shape.rope_theta, shape.farthest)
        for name, table in zip(("cos", "sin"), tables, strict=True):
            self.register_buffer(name, table, persistent=False)

    @property
    def numbered(self) -> list[tuple[int, Layer]]:
        """The layers with their numbers."""
        return [(n, layer) for n, layer in enumerate(self.layers) if isinstance(layer, Layer)]

    def forward(
        self,
        tokens: Tensor,
        mode: Mode,
        rows: Tensor | None = None,
        keep: Keep | None = None,
        tapped: Sequence[int] = (),
    ) -> Passed:
        """Pass ``tokens`` [b, t] through all layers.

        ``rows`` [r]: positions at which the indexers are taught; ``keep`` is given each layer's
        heads, for a cache; ``tapped``: layers after which a draft reads.
        """
        length = tokens.shape[1]
        cos, sin = self.cos[:length, None], self.sin[:length, None]
        stream = rows_of(tokens, self.embed)
        taps = [stream[..., :0]]
        loads: dict[int, Tensor] = {}
        taught: list[tuple[Tensor, Tensor]] = []
        for n, layer in self.numbered:
            heads = self._heads(layer, stream, cos, sin, mode)
            if rows is not None and layer.sparse:
                taught.append(self._teach(heads, rows, mode))
            if keep is not None:
                keep(n, heads)
            stream = stream + self._attend(layer, heads, mode) @ layer.o
            mlp, load = layer.mlp(stream.flatten(0, 1), mode)
            stream = stream + mlp.view_as(stream)
            if load is not None:
                loads[n] = load
            if n in tapped:
                taps.append(stream)
        lost, covered = _stacked(taught, stream)
        return Passed(stream, torch.cat(taps, -1), lost, covered, loads)

    def logits(self, stream: Tensor) -> Tensor:
        """Return logits [..., vocabulary] of ``stream`` [..., hidden]."""
        return norm(stream, self.norm, self.shape.rms_norm_eps) @ self.head

    def _heads(self, layer: Layer, stream: Tensor, cos: Tensor, sin: Tensor, mode: Mode) -> Heads:
        heads = layer.project(stream, cos, sin, mode.fast)
        if mode.held:
            heads = held(heads, mode)
        if not mode.fast:
            return heads
        parts = (heads.q, heads.k, heads.v, heads.index_q, heads.index_k)
        return Heads(*(x if x is None else x.bfloat16() for x in parts))  # type: ignore[arg-type]

    def _teach(self, heads: Heads, rows: Tensor, mode: Mode) -> tuple[Tensor, Tensor]:
        q, k, index_q, index_k = heads.q.detach(), heads.k.detach(), heads.index_q, heads.index_k
        assert index_q is not None
        assert index_k is not None
        s = self.shape
        run = form(index_loss, mode.fast)
        return run(q, k, index_q, index_k, rows, s.block_size, s.topk_blocks)

    def _attend(self, layer: Layer, heads: Heads, mode: Mode) -> Tensor:
        s, chosen = self.shape, None
        if mode.sparse and heads.index_q is not None and heads.index_k is not None:
            with torch.no_grad():
                chosen = select(
                    heads.index_q, heads.index_k, s.block_size, s.topk_blocks, mode.fast
                )
        return attend(heads.q, heads.k, heads.v, chosen, s.block_size, mode.fast)


def held(heads: Heads, mode: Mode) -> Heads:
    """Return ``heads`` as a cache of MXFP4 holds them, in each ``mode.held``-th sequence."""
    index_k = None if heads.index_k is None else heads.index_k.float()
    q, k, v, index_k = form(as_held, mode.fast)(
        heads.q.float(), heads.k.float(), heads.v.float(), index_k, mode.held
    )
    return Heads(q, k, v, heads.index_q, index_k)


def _stacked(taught: list[tuple[Tensor, Tensor]], stream: Tensor) -> tuple[Tensor, Tensor]:
    if not taught:
        return stream.new_zeros(()), stream.new_zeros(0)
    return (
        torch.stack([loss for loss, _ in taught]).mean(),
        torch.stack([covered for _, covered in taught]),
    )
