"""The order of a sum, as data: which accumulator takes which terms, and how those are added.

Batch invariance is a rule about this order: it may depend on weight coordinates (which chunk of K,
which expert, which head) and on the row itself (its slot, its keys), never on who else is in the
step. Floating-point addition is not associative, so an order is part of the result.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ROW", "WEIGHT", "Sum"]

# What an order may depend on. Everything else (the expert's rank in the step's union, the row's
# place in the batch, the width, the block, who arrived first) is the batch's.
WEIGHT = frozenset({"chunk", "expert", "output", "head", "part", "rank"})
ROW = frozenset({"slot", "partition", "key"})


@dataclass(frozen=True, slots=True)
class Sum:
    """Σ of ``extent`` terms in chunks of ``chunk``, dealt to ``lanes`` accumulators.

    A chunk's lane is the number that the coordinates ``dealt_by`` spell, in base chunks, modulo
    ``lanes``. A lane starts at 0 and adds its terms one by one, ascending. ``merged_by`` says how
    lanes become one: ``lane`` (ascending, one by one) or ``halving`` (the upper half onto the lower
    until one is left, as warps and vectors do; lanes is a power of two).
    """

    name: str
    extent: int
    chunk: int = 1
    lanes: int = 1
    dealt_by: tuple[str, ...] = ("chunk",)
    merged_by: str = "lane"

    @property
    def chunks(self) -> int:
        """Chunks of the whole extent; the last may be shorter."""
        return -(-self.extent // self.chunk)

    def lane(self, chunk: int, spelled: tuple[int, ...]) -> int:
        """Return the lane of ``chunk`` where the other coordinates have the values ``spelled``."""
        number = 0
        for name, place in zip(self.dealt_by, spelled, strict=True):
            number = number * self.chunks + (chunk if name == "chunk" else place)
        return number % self.lanes

    def schedule(
        self, where: Mapping[str, int] | None = None, extent: int | None = None
    ) -> tuple[tuple[range, ...], ...]:
        """Return for each lane the ranges of terms that it adds, in its order.

        ``extent`` replaces the sum's own where a row has fewer terms (keys that it sees).
        """
        spelled = tuple((where or {}).get(name, 0) for name in self.dealt_by)
        return _schedule(self, spelled, self.extent if extent is None else extent)

    def merges(self, arrivals: Sequence[int] | None = None) -> tuple[tuple[int, int], ...]:
        """Return the steps (to, from) that add lane ``from`` onto lane ``to``, in order.

        The sum ends in the ``to`` of the last step. ``arrivals`` [lanes] are the times at which
        lanes were done: only the forbidden ``merged_by="arrival"`` looks at them.
        """
        if self.merged_by == "halving":
            return tuple(_halvings(self.lanes))
        order = range(self.lanes)
        if self.merged_by == "arrival" and arrivals is not None:
            order = sorted(order, key=arrivals.__getitem__)  # type: ignore[assignment]
        first, *others = order
        return tuple((first, other) for other in others)


@functools.lru_cache(maxsize=1 << 12)
def _schedule(total: Sum, spelled: tuple[int, ...], terms: int) -> tuple[tuple[range, ...], ...]:
    lanes: list[list[range]] = [[] for _ in range(total.lanes)]
    for chunk, first in enumerate(range(0, terms, total.chunk)):
        taken = range(first, min(first + total.chunk, terms))
        lanes[total.lane(chunk, spelled)].append(taken)
    return tuple(map(tuple, lanes))


def _halvings(lanes: int) -> list[tuple[int, int]]:
    steps, left = [], lanes
    while left > 1:
        left //= 2
        steps += [(lane, lane + left) for lane in range(left)]
    return steps
