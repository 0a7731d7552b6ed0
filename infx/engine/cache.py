"""The paged cache: which page belongs to whom (`PagePool`), and the tensors (`KvCache`).

Full pages are known by a hash that chains over all tokens before them, so a request whose prompt
begins with cached pages shares them. A page without references stays findable until it is needed.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.shapes import ModelConfig

__all__ = ["KvCache", "PagePool", "chain", "page_bytes"]


def chain(previous: bytes, tokens: Sequence[int]) -> bytes:
    """Return the hash of a page of ``tokens`` after the page of hash ``previous``."""
    return hashlib.blake2b(previous + array("i", tokens).tobytes(), digest_size=16).digest()


@dataclass(slots=True)
class PagePool:
    """Pages with reference counts. Pages to reuse come in order of release, unhashed ones first."""

    pages: int
    _references: list[int] = field(init=False)
    _free: OrderedDict[int, None] = field(init=False)
    _page_of: dict[bytes, int] = field(init=False, default_factory=dict)
    _hash_of: dict[int, bytes] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._references = [0] * self.pages
        self._free = OrderedDict.fromkeys(range(self.pages))

    @property
    def free(self) -> int:
        """Pages without references."""
        return len(self._free)

    @property
    def usage(self) -> float:
        """Share of pages that requests hold (0 … 1)."""
        return 1 - self.free / self.pages

    def take(self, count: int) -> list[int]:
        """Return ``count`` pages, each with one reference. Raises MemoryError, taking none."""
        if count > self.free:
            raise MemoryError(f"{count} pages asked, {self.free} free")
        return [self._take_one() for _ in range(count)]

    def share(self, hashes: Iterable[bytes]) -> list[int]:
        """Return the cached pages of the longest known prefix of ``hashes``, references taken."""
        shared = []
        for name in hashes:
            page = self._page_of.get(name)
            if page is None:
                break
            self._free.pop(page, None)
            self._references[page] += 1
            shared.append(page)
        return shared

    def publish(self, page: int, name: bytes) -> None:
        """Make a full page findable by its hash; the first page of a hash stays its page."""
        if name not in self._page_of and page not in self._hash_of:
            self._page_of[name], self._hash_of[page] = page, name

    def release(self, pages: Sequence[int]) -> None:
        """Drop one reference of each page; the last page of a chain is reused first."""
        for page in reversed(pages):
            self._references[page] -= 1
            if self._references[page] == 0:
                self._free[page] = None
                self._free.move_to_end(page, last=page in self._hash_of)

    def check(self, held: Iterable[Sequence[int]]) -> None:
        """Raise AssertionError unless references, free pages and hashes agree with ``held``."""
        counts = [0] * self.pages
        for pages in held:
            for page in pages:
                counts[page] += 1
        if counts != self._references:
            raise AssertionError(f"references {self._references} but held {counts}")
        if {p for p, n in enumerate(counts) if n == 0} != set(self._free):
            raise AssertionError("the free pages are not those without references")
        if {name: page for page, name in self._hash_of.items()} != self._page_of:
            raise AssertionError("hashes and pages do not agree")

    def _take_one(self) -> int:
        page, _ = self._free.popitem(last=False)
        name = self._hash_of.pop(page, None)
        if name is not None:
            del self._page_of[name]
        self._references[page] = 1
        return page


@dataclass(frozen=True, slots=True)
class KvCache:
    """Float32 pages by slot.

    ``keys``, ``values`` [layers + 1, pages, kv heads, block, head dim] (the last layer is the
    draft's), ``index_keys`` [layers, slots, head dim], ``features`` [slots, hidden]: the target's
    auxiliary states as the draft reads them, kept by slot so that chunks, shared prefixes and
    rejected drafts need no state of their own.
    """

    keys: Tensor
    values: Tensor
    index_keys: Tensor
    features: Tensor
    block: int

    @classmethod
    def empty(cls, shape: ModelConfig, pages: int) -> KvCache:
        """Return a cache of ``pages`` pages of zeros."""
        import torch

        slots = pages * shape.block_size
        paged = (shape.num_layers + 1, pages, shape.kv_heads, shape.block_size, shape.head_dim)
        return cls(
            keys=torch.zeros(paged),
            values=torch.zeros(paged),
            index_keys=torch.zeros(shape.num_layers, slots, shape.head_dim),
            features=torch.zeros(slots, shape.hidden_size),
            block=shape.block_size,
        )

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store ``keys``, ``values`` [n, kv heads, head dim] at ``slots`` [n]."""
        page, offset = slots // self.block, slots % self.block
        self.keys[layer, page, :, offset] = keys
        self.values[layer, page, :, offset] = values


def page_bytes(shape: ModelConfig) -> int:
    """Return the bytes of one page over all tensors of the cache."""
    keys_and_values = 2 * (shape.num_layers + 1) * shape.kv_heads * shape.head_dim
    floats = keys_and_values + shape.num_layers * shape.head_dim + shape.hidden_size
    return 4 * shape.block_size * floats
