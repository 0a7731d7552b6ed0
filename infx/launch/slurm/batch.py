"""Orders into batches: what one sbatch submits is a single job, or an array of equal shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from infx.domain.identity import content_id
from infx.domain.plan import Job
from infx.domain.point import short
from infx.launch.executor import Order

__all__ = ["MARGIN_MIN", "Batch", "Shape", "batches", "job_shape"]

MARGIN_MIN = 5
"""Minutes by which the scheduler's limit is later than the job's own, at which it ends in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the scheduler allocates: one node with ``gpus`` accelerators for ``time_limit_s``.

    ``exclude`` are nodes that may not serve it, beside those that the cluster leaves out.
    """

    gpus: int
    time_limit_s: int
    exclude: tuple[str, ...] = ()

    @property
    def minutes(self) -> int:
        """The limit that the scheduler is given: it counts in minutes."""
        return math.ceil(self.time_limit_s / 60) + MARGIN_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One submission. ``at_once`` throttles an array (%N); 0: no throttle."""

    name: str
    shape: Shape
    orders: tuple[Order, ...]
    at_once: int = 0

    @property
    def array(self) -> bool:
        """True when it is submitted as an array, its tasks numbered from 0 in order."""
        return len(self.orders) > 1

    def numbered(self) -> list[Order]:
        """Return the orders with the names by which the scheduler will know them."""
        return [
            replace(
                order,
                attempt=replace(
                    order.attempt, batch=self.name, task=number if self.array else None
                ),
            )
            for number, order in enumerate(self.orders)
        ]

    def task_id(self, job_id: str, number: int) -> str:
        """Return the scheduler's id of one order, given the batch's; empty for an empty one."""
        return f"{job_id}_{number}" if self.array and job_id else job_id


def job_shape(job: Job, *, gpus: bool, exclude: Sequence[str] = ()) -> Shape:
    """Return what a job needs; ``gpus`` False where the cluster has none."""
    return Shape(
        gpus=job.arm.axes.tp * job.arm.axes.pp if gpus else 0,
        time_limit_s=job.time_limit_s,
        exclude=tuple(sorted(exclude)),
    )


def batches(orders: Sequence[Order], *, gpus: bool, largest: int, at_once: int = 0) -> list[Batch]:
    """Return the batches of ``orders``, equal shapes together, at most ``largest`` in each.

    A batch of one has its attempt's own name, an array one that its members determine.
    """
    groups: dict[Shape, list[Order]] = {}
    for order in orders:
        shape = job_shape(order.job, gpus=gpus, exclude=order.exclude)
        groups.setdefault(shape, []).append(order)
    return [
        Batch(name=_name(part), shape=shape, orders=tuple(part), at_once=at_once)
        for shape, group in groups.items()
        for part in _cut(group, largest)
    ]


def _cut(group: list[Order], largest: int) -> list[list[Order]]:
    return [group[n : n + largest] for n in range(0, len(group), largest)]


def _name(orders: Sequence[Order]) -> str:
    if len(orders) == 1:
        return orders[0].name
    members = content_id([order.name for order in orders])
    return f"infx-{orders[0].attempt.run_id}-{short(members)}-array"
