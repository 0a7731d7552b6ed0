"""What may be submitted now: the limits of the queue, the throttle, and back-pressure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from infx.config.sites import Cluster, SlurmSite
from infx.launch.executor import Order
from infx.launch.slurm.batch import Batch, batches, units
from infx.launch.slurm.watch import key_of

__all__ = ["Backlog"]

LARGEST_ARRAY = 1000
"""Tasks of an array where the scheduler was not asked: its default MaxArraySize is 1001."""

HELD_BACK_S = (15.0, 240.0)
"""After a limit refused a batch nothing is offered for so long, twice as long each time."""


class Backlog:
    """Cuts orders into batches, as many as fit beside those that are held; a group is one job.

    ``largest_array`` and ``longest_s`` (of a job, 0: no limit) are what the scheduler takes.
    """

    def __init__(
        self, cluster: Cluster, site: SlurmSite, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gpus, self._site, self._clock = cluster.gpus_per_node > 0, site, clock
        self._throttles: dict[str, int] = {}
        self._until, self._wait_s = float("-inf"), HELD_BACK_S[0]
        self._most = site.submit_limit
        self.largest_array = LARGEST_ARRAY
        self.longest_s = 0

    def cut(self, orders: Sequence[Order], at_once: int) -> list[Batch]:
        """Return all orders as batches of at most ``at_once`` running tasks (0: no throttle)."""
        largest = min(self._site.largest_array or self.largest_array, self.largest_array)
        return batches(
            orders,
            gpus=self._gpus,
            largest=max(1, largest),
            at_once=at_once,
            longest_s=self.longest_s,
        )

    def fitting(self, orders: Sequence[Order], held: Collection[Order]) -> list[Batch]:
        """Return the batches to submit now.

        Under a throttle it is one at a time. Beside open jobs it is no larger than what they leave:
        a throttle cannot widen when they end.
        """
        room = min(self._site.submit_limit - len(set(map(key_of, held))), self._most)
        if self._clock() < self._until or room <= 0:
            return []
        most, waiting = self._site.jobs_at_once, units(orders)
        if not most:
            return self.cut(_flat(waiting[:room]), 0)
        free = most - self._running_at_most(held)
        if free <= 0:
            return []
        offered = waiting[:room] if free == most else waiting[: min(room, free)]
        chosen = self.cut(_flat(offered), free)[:1]
        self._throttles |= {batch.name: batch.at_once for batch in chosen}
        return chosen

    def hold(self, too_many: int = 0) -> float:
        """Offer nothing for a while; return how many seconds.

        ``too_many`` tasks at once went over a limit: then half as many are offered, until it is one
        that waits longer each time.
        """
        if too_many > 1:
            self._most, self._wait_s = too_many // 2, HELD_BACK_S[0]
        wait_s, self._wait_s = self._wait_s, min(self._wait_s * 2, HELD_BACK_S[1])
        self._until = self._clock() + wait_s
        return wait_s

    def accepted(self) -> None:
        """The next refusal waits the least time again, and more may be offered."""
        self._wait_s = HELD_BACK_S[0]
        self._most = min(self._most * 2, self._site.submit_limit)

    def _running_at_most(self, held: Collection[Order]) -> int:
        """Return how many of the held ones may run together. What an earlier infx submitted has
        a throttle that is not known here: it may be as wide as the site's."""
        open_ = Counter(name for name, _ in set(map(key_of, held)))
        most = self._site.jobs_at_once
        return sum(min(n, self._throttles.get(name, most)) for name, n in open_.items())


def _flat(waiting: Sequence[Sequence[Order]]) -> list[Order]:
    return [order for unit in waiting for order in unit]
