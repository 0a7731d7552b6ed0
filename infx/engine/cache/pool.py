"""Which page belongs to whom.

Full pages are known by a hash that chains over all tokens before them, so a request whose prompt
begins with cached pages shares them. A page without references stays findable until it is needed.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = ["PagePool", "chain"]


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
