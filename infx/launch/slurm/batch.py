"""Orders into batches: what one sbatch submits is a single job, an array of equal shape, or a group
whose orders take turns in one job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from infx.domain.identity import content_id
from infx.domain.plan import Job
from infx.domain.point import short
from infx.launch.executor import Order

__all__ = ["MARGIN_MIN", "Batch", "Shape", "batches", "job_shape", "unit_shape", "units"]

MARGIN_MIN = 5
"""Minutes by which the scheduler's limit is later than the job's own, at which it ends in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the scheduler allocates: one node with ``gpus`` accelerators for ``time_limit_s``.

    ``exclude`` are nodes that may not serve it, beside those that the cluster leaves out; ``turns``
    the jobs that run in it, one after another.
    """

    gpus: int
    time_limit_s: int
    exclude: tuple[str, ...] = ()
    turns: int = 1

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
    def in_turn(self) -> bool:
        """True when its orders run one after another in a single job."""
        return self.shape.turns > 1

    @property
    def array(self) -> bool:
        """True when it is submitted as an array, its tasks numbered from 0 in order."""
        return len(self.orders) > 1 and not self.in_turn

    @property
    def jobs(self) -> int:
        """How many jobs the scheduler counts."""
        return len(self.orders) if self.array else 1

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
        exclude=tuple(sorted(set(exclude))),
    )


def unit_shape(
    jobs: Sequence[Job], *, gpus: bool, exclude: Sequence[str] = (), longest_s: int = 0
) -> Shape:
    """Return what jobs that take turns need together: the time of all, but no more than
    ``longest_s`` (0: no limit) where one alone does not need it; one job is its own shape."""
    shapes = [job_shape(job, gpus=gpus, exclude=exclude) for job in jobs]
    limits = [shape.time_limit_s for shape in shapes]
    whole_s = sum(limits) + (len(jobs) - 1) * MARGIN_MIN * 60
    return Shape(
        gpus=max(shape.gpus for shape in shapes),
        time_limit_s=max(*limits, min(whole_s, longest_s or whole_s)),
        exclude=shapes[0].exclude,
        turns=len(jobs),
    )


def units(orders: Iterable[Order]) -> list[list[Order]]:
    """Return the orders that go as a whole, those of a group together, in order of their first."""
    found: dict[str, list[Order]] = {}
    for order in orders:
        found.setdefault(order.job.unit, []).append(order)
    return list(found.values())


def batches(
    orders: Sequence[Order], *, gpus: bool, largest: int, at_once: int = 0, longest_s: int = 0
) -> list[Batch]:
    """Return the batches of ``orders``: equal shapes together, at most ``largest`` in each, and
    groups each alone, for ``longest_s`` at most (0: no limit).

    A batch of one has its attempt's own name, another one that its members determine.
    """
    alike: dict[tuple[Shape, str], list[Order]] = {}
    for unit in units(orders):
        exclude = [node for order in unit for node in order.exclude]
        jobs = [order.job for order in unit]
        shape = unit_shape(jobs, gpus=gpus, exclude=exclude, longest_s=longest_s)
        alike.setdefault((shape, jobs[0].group if len(unit) > 1 else ""), []).extend(unit)
    return [
        Batch(name=_name(part, group), shape=shape, orders=tuple(part), at_once=at_once)
        for (shape, group), some in alike.items()
        for part in _cut(some, len(some) if group else largest)
    ]


def _cut(group: list[Order], largest: int) -> list[list[Order]]:
    return [group[n : n + largest] for n in range(0, len(group), largest)]


def _name(orders: Sequence[Order], group: str) -> str:
    if len(orders) == 1:
        return orders[0].name
    members = content_id([order.name for order in orders])
    kind = "group" if group else "array"
    return f"infx-{orders[0].attempt.run_id}-{short(members)}-{kind}"
