"""What a drafter is: it watches the target's states and proposes the next step's K tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from infx.engine.batch import Batch
from infx.engine.cache import KvCache
from infx.engine.scheduler import Step

__all__ = ["Drafter", "NoDrafter"]


class Drafter(Protocol):
    """A draft model. All it remembers of a token stands in the cache at the token's slot.

    So chunks, shared prefixes, preemption and rejected drafts need nothing of their own: a position
    that the target computes again is observed again.
    """

    def observe(self, aux: Tensor, batch: Batch, cache: KvCache) -> None:
        """Keep what drafts will need of a target pass: ``aux`` [R, 3 hidden] of ``batch``."""

    def propose(self, step: Step, emitted: Sequence[list[int]], cache: KvCache) -> list[list[int]]:
        """Return K drafts for each work of ``step`` that chose a token, none for the others.

        ``emitted`` are the works' tokens of this step; the last of them has no target state yet.
        """


class NoDrafter:
    """No speculation: nothing to keep, nothing proposed."""

    def observe(self, aux: Tensor, batch: Batch, cache: KvCache) -> None:
        """Keep nothing."""

    def propose(self, step: Step, emitted: Sequence[list[int]], cache: KvCache) -> list[list[int]]:
        """Return no draft for any work."""
        return [[] for _ in emitted]
