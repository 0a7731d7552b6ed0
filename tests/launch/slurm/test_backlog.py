"""What may be submitted now."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from infx.launch.executor import Order
from infx.launch.slurm.backlog import HELD_BACK_S, Backlog
from tests.launch.slurm.played import Clock, cluster
from tests.launch.slurm.sample_batches import batch
from tests.launch.slurm.test_batch import grouped, shaped

ORDERS = batch(40).orders
LEAST_S, MOST_S = HELD_BACK_S


def backlog(clock: Clock | None = None, **site: Any) -> Backlog:
    whole = cluster(gpus_per_node=0, **site)
    assert whole.slurm
    return Backlog(whole, whole.slurm, clock or Clock())


def sizes(of: Backlog, orders: list[Order], held: list[Order] = []) -> list[int]:  # noqa: B006
    return [len(made.orders) for made in of.fitting(orders, held)]


def test_all_go_at_once_without_limits() -> None:
    assert sizes(backlog(), list(ORDERS)) == [40]


def test_the_submit_limit_counts_what_is_open() -> None:
    limited = backlog(submit_limit=10)
    assert sizes(limited, list(ORDERS)) == [10]
    assert sizes(limited, list(ORDERS[7:]), list(ORDERS[:7])) == [3]
    assert sizes(limited, list(ORDERS[10:]), list(ORDERS[:10])) == []
    assert sizes(limited, list(ORDERS[12:]), list(ORDERS[:12])) == []


def test_a_group_counts_as_one_job_and_is_never_cut() -> None:
    groups = [*grouped(ORDERS[:4]), *grouped(ORDERS[4:8], "mono-2")]
    assert sizes(backlog(submit_limit=2), groups) == [4, 4]
    assert sizes(backlog(submit_limit=1), groups) == [4]
    open_ = backlog(jobs_at_once=2)
    [made] = open_.fitting(groups, [])
    held = made.numbered()
    assert sizes(open_, groups[4:], held) == [4]
    assert sizes(backlog(submit_limit=2), list(ORDERS[8:]), held) == [1]


def test_arrays_are_no_larger_than_the_site_and_its_scheduler_allow() -> None:
    assert sizes(backlog(largest_array=15), list(ORDERS)) == [15, 15, 10]
    found = backlog()
    found.largest_array = 30
    assert sizes(found, list(ORDERS)) == [30, 10]
    found = backlog(largest_array=50)
    found.largest_array = 0  # MaxArraySize=0: no arrays at all
    assert sizes(found, list(ORDERS[:3])) == [1, 1, 1]


def test_a_scheduler_that_takes_larger_arrays_gets_them() -> None:
    found = backlog(submit_limit=5000)
    found.largest_array = 4001
    many = list(ORDERS) * 50
    assert sizes(found, many) == [2000]


def test_a_throttle_is_written_on_the_array() -> None:
    [made] = backlog(jobs_at_once=4).fitting(list(ORDERS), [])
    assert (len(made.orders), made.at_once) == (40, 4)


def test_beside_open_jobs_only_what_they_leave_goes() -> None:
    throttled = backlog(jobs_at_once=4)
    [first] = throttled.fitting(list(ORDERS[:10]), [])
    held = first.numbered()
    rest = list(ORDERS[10:])
    assert throttled.fitting(rest, held) == []
    assert throttled.fitting(rest, held[:4]) == []
    [second] = throttled.fitting(rest, held[:1])  # three may run beside the last one
    assert len(second.orders) == 3
    assert throttled.fitting(rest[3:], [*held[:1], *second.numbered()]) == []


def test_an_array_of_an_earlier_infx_may_run_as_wide_as_the_site_lets_it() -> None:
    [before] = backlog(jobs_at_once=4).fitting(list(ORDERS[:10]), [])
    resumed = backlog(jobs_at_once=4)
    assert resumed.fitting(list(ORDERS[10:]), before.numbered()) == []
    [more] = resumed.fitting(list(ORDERS[10:]), before.numbered()[:3])
    assert len(more.orders) == 1


def test_shapes_go_one_after_another_under_a_throttle() -> None:
    throttled = backlog(jobs_at_once=4)
    orders = [shaped(o, limit_s=60 + n % 2) for n, o in enumerate(ORDERS)]
    [first] = throttled.fitting(orders, [])
    assert first.shape.time_limit_s == 60
    assert len(first.orders) == 20


def test_back_pressure_doubles_up_to_its_most_and_starts_anew() -> None:
    clock = Clock()
    held_back = backlog(clock)
    waits = []
    for _ in range(6):
        waits.append(held_back.hold())
        clock.now_s += waits[-1] - 1
        assert sizes(held_back, list(ORDERS)) == []
        clock.now_s += 1
        assert sizes(held_back, list(ORDERS)) == [40]
    assert waits == [15, 30, 60, 120, 240, 240]
    held_back.accepted()
    assert held_back.hold() == LEAST_S


def test_what_goes_over_a_limit_is_halved_until_it_passes() -> None:
    clock = Clock()
    halved = backlog(clock)
    offered = []
    for _ in range(8):
        [made] = halved.fitting(list(ORDERS), [])
        offered.append(len(made.orders))
        clock.now_s += halved.hold(len(made.orders))
    assert offered == [40, 20, 10, 5, 2, 1, 1, 1]
    halved.accepted()
    assert sizes(halved, list(ORDERS)) == [2]


def test_halving_waits_the_least_time_and_one_job_waits_longer() -> None:
    held_back = backlog()
    waits = [held_back.hold(n) for n in (8, 4, 2, 1, 1, 1)]
    assert waits == [15, 15, 15, 30, 60, 120]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(2, 30), st.integers(1, 3), st.randoms())
def test_a_throttle_is_never_passed_and_never_idle(
    at_once: int, limit: int, count: int, kinds: int, chance: object
) -> None:
    """A scheduler runs what each array's throttle allows; one running job ends at a time."""
    site = backlog(jobs_at_once=at_once, submit_limit=limit)
    waiting = [shaped(o, limit_s=60 + n % kinds) for n, o in enumerate(ORDERS[:count])]
    arrays: list[tuple[int, list[Order]]] = []
    while waiting or arrays:
        held = [order for _, open_ in arrays for order in open_]
        while made := site.fitting(waiting, held):
            [one] = made
            arrays.append((one.at_once, one.numbered()))
            names = {order.name for order in one.orders}
            waiting = [order for order in waiting if order.name not in names]
            held = [order for _, open_ in arrays for order in open_]
        assert len(held) <= limit
        running = [order for most, open_ in arrays for order in open_[:most]]
        assert len(running) <= at_once
        assert len(running) == min(at_once, limit, len(waiting) + len(held))
        gone = chance.choice(running)  # type: ignore[attr-defined]
        arrays = [(most, [o for o in open_ if o.name != gone.name]) for most, open_ in arrays]
        arrays = [(most, open_) for most, open_ in arrays if open_]
