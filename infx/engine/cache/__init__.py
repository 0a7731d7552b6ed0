"""The paged cache: who holds which page (`PagePool`), and what the pages hold (`KvCache`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infx.engine.cache.kinds import KINDS, Kinds, page_bytes
from infx.engine.cache.pool import PagePool, chain

if TYPE_CHECKING:
    from infx.engine.cache.pages import KvCache

__all__ = ["KINDS", "Kinds", "KvCache", "PagePool", "chain", "page_bytes"]


def __getattr__(name: str) -> Any:
    # Lazy: the scheduler and the command line use the rest, and need no torch.
    if name != "KvCache":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from infx.engine.cache.pages import KvCache

    return KvCache
