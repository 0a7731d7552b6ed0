"""The cache's tensors: vectors encoded where they are written, decoded where they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.cache.kinds import Kinds
from infx.engine.quant import (
    fp8_quantise,
    fp8_round,
    fp8_unpack,
    mxfp4_pack,
    mxfp4_unpack,
    saturating_e4m3,
)
from infx.engine.shapes import ModelConfig

__all__ = ["KvCache"]


@dataclass(frozen=True, slots=True)
class _Format:
    """``encode`` makes float32 [..., dim] into parts [..., bytes or numbers]; ``decode`` undoes it.

    Each vector is encoded alone: what is stored for a token depends on that token only.
    """

    encode: Callable[[Tensor], tuple[Tensor, ...]]
    decode: Callable[..., Tensor]


def _scaled(x: Tensor) -> tuple[Tensor, Tensor]:
    codes, scale = fp8_quantise(x, -1)
    return codes.view(torch.uint8), scale


_FORMATS = {
    "fp32": _Format(lambda x: (x,), lambda x: x),
    "bf16": _Format(lambda x: (x.bfloat16(),), Tensor.float),
    "fp8": _Format(lambda x: (saturating_e4m3(x).view(torch.uint8),), fp8_unpack),
    "fp8-scaled": _Format(_scaled, lambda codes, scale: fp8_unpack(codes).mul_(scale)),
    "mxfp4": _Format(mxfp4_pack, mxfp4_unpack),
}


@dataclass(frozen=True, slots=True)
class _Paged:
    """Vectors by layer, row and offset; a row is what one head (or the indexer) has in one page.

    ``parts`` [layers, rows, block, width] are the format's, from layer ``first`` on. A row lies
    in one piece, so reading copies whole rows, not single tokens.
    """

    format: _Format
    parts: tuple[Tensor, ...]
    first: int

    @classmethod
    def empty(
        cls, form: str, layers: int, rows: int, block: int, dim: int, first: int = 0
    ) -> _Paged:
        """Return zeros: ``rows`` rows of ``block`` vectors [dim] a layer, from layer ``first``."""
        chosen = _FORMATS[form]
        sample = chosen.encode(torch.zeros(dim))
        parts = (torch.zeros(layers, rows, block, len(p), dtype=p.dtype) for p in sample)
        return cls(chosen, tuple(parts), first)

    def write(self, layer: int, places: Tensor, vectors: Tensor) -> None:
        """Store ``vectors`` [*places, dim] at ``places``, numbers row * block + offset."""
        for part, new in zip(self.parts, self.format.encode(vectors), strict=True):
            part[layer - self.first].flatten(0, 1)[places] = new

    def read(self, layer: int, rows: Tensor) -> Tensor:
        """Return float32 [..., n block, dim] of ``rows`` [..., n]."""
        wanted = rows.flatten()
        taken = (
            part[layer - self.first]
            .flatten(1)
            .index_select(0, wanted)
            .view(*rows.shape, *part.shape[2:])
            for part in self.parts
        )
        return self.format.decode(*taken).flatten(-3, -2)


@dataclass(frozen=True, slots=True)
class KvCache:
    """Keys and values, the indexer's keys and the draft's features of all slots.

    A slot is page * ``block`` + offset. Layers are the target's, then the draft's, all of the same
    kind; only those that attend sparsely have index keys. ``features`` [slots, n] float32 are the
    target's auxiliary states as EAGLE3 reads them, kept by slot so that chunks, shared prefixes and
    rejected drafts need no state of their own; n is 0 where no draft reads them.
    """

    kinds: Kinds
    features: Tensor
    block: int
    _kv: _Paged
    _index: _Paged
    # Rows of a page's heads [2, heads]: those of the keys, then those of the values.
    _heads: Tensor

    @classmethod
    def empty(
        cls,
        shape: ModelConfig,
        pages: int,
        draft_layers: int = 0,
        kinds: Kinds | None = None,
        features: int = 0,
        first_layer: int = 0,
    ) -> KvCache:
        """Return a cache of ``pages`` pages of zeros, float32 unless ``kinds`` says otherwise.

        ``features`` are kept as so many numbers a token. ``first_layer`` is the first layer that it
        has: a draft's where another cache has the target's.
        """
        kinds = kinds or Kinds()
        layers, heads, block, dim = (
            shape.num_layers - first_layer,
            shape.kv_heads,
            shape.block_size,
            shape.head_dim,
        )
        sparse = max(first_layer, shape.full_layers)
        rows = pages * heads
        kv = _Paged.empty(kinds.kv_format, layers + draft_layers, 2 * rows, block, dim, first_layer)
        return cls(
            kinds=kinds,
            features=torch.zeros(pages * block, features),
            block=block,
            _kv=kv,
            _index=_Paged.empty(kinds.index, shape.num_layers - sparse, pages, block, dim, sparse),
            _heads=torch.stack((torch.arange(heads), torch.arange(heads) + rows)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that all tensors of the cache hold."""
        return sum(part.nbytes for part in (*self._kv.parts, *self._index.parts, self.features))

    @property
    def slots(self) -> int:
        """Tokens that the cache holds."""
        return len(self.features)

    @property
    def device(self) -> torch.device:
        """Where all tensors of the cache lie."""
        return self.features.device

    def layer_parts(self, layer: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return the tensors of a layer's keys and values, and of its index keys (none: empty).

        The first are [2 pages x kv heads, block, width] each, keys before values; the second
        [pages, block, width]; which there are is the format's (`Kinds`): numbers, then scales.
        """
        kv, index = self._kv, self._index
        keys = layer - index.first
        return (
            tuple(part[layer - kv.first] for part in kv.parts),
            tuple(part[keys] for part in index.parts if 0 <= keys < len(part)),
        )

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store ``keys``, ``values`` [n, kv heads, head dim] at ``slots`` [n]."""
        page, offset = slots // self.block, slots % self.block
        rows = page[:, None] * self._heads.shape[1] + self._heads[:, None]
        self._kv.write(layer, rows * self.block + offset[:, None], torch.stack((keys, values)))

    def write_index(self, layer: int, slots: Tensor, keys: Tensor) -> None:
        """Store the indexer's ``keys`` [n, head dim] at ``slots`` [n]."""
        self._index.write(layer, slots, keys)

    def read(self, layer: int, pages: Tensor) -> tuple[Tensor, Tensor]:
        """Return float32 keys and values [S, G, ..., n block, dim] of ``pages`` [S, G, ..., n].

        Each kv head reads its own; G is the kv heads, or 1 where all read the same pages.
        """
        each = [1] * (pages.ndim - 2)
        heads = self._heads.view(2, 1, -1, *each)
        keys, values = self._kv.read(layer, pages * self._heads.shape[1] + heads).unbind()
        return keys, values

    def read_index(self, layer: int, table: Tensor) -> Tensor:
        """Return the indexer's float32 keys [S, n block, dim] of pages ``table`` [S, n]."""
        return self._index.read(layer, table)

    def query(self, queries: Tensor) -> Tensor:
        """Return ``queries`` as they meet the cached keys: saturating e4m3 if those are MXFP4."""
        return fp8_round(queries) if self.kinds.kv == "mxfp4" else queries
