"""Orders into batches: equal shapes together, cut at the largest array, named by their members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from infx.domain.axes import Axes
from infx.launch.executor import Order
from infx.launch.slurm.batch import MARGIN_MIN, Shape, batches, job_shape
from tests.launch.slurm.sample_batches import batch

ORDERS = batch(12).orders


def shaped(order: Order, tp: int = 1, limit_s: int = 60, exclude: tuple[str, ...] = ()) -> Order:
    arm = replace(order.job.arm, axes=Axes(conc=0, tp=tp))
    job = replace(order.job, arm=arm, time_limit_s=limit_s)
    return replace(order, job=job, exclude=exclude)


def test_the_shape_of_a_job() -> None:
    order = shaped(ORDERS[0], tp=4, limit_s=90)
    assert job_shape(order.job, gpus=True) == Shape(gpus=4, time_limit_s=90)
    assert job_shape(order.job, gpus=False, exclude=["b", "a"]) == Shape(
        gpus=0, time_limit_s=90, exclude=("a", "b")
    )


def test_pipelines_take_accelerators_too() -> None:
    order = shaped(ORDERS[0])
    arm = replace(order.job.arm, axes=Axes(conc=0, tp=2, pp=3))
    assert job_shape(replace(order.job, arm=arm), gpus=True).gpus == 6


def test_equal_shapes_are_one_array_and_others_are_not() -> None:
    orders = [
        shaped(ORDERS[0]),
        shaped(ORDERS[1], tp=2),
        shaped(ORDERS[2]),
        shaped(ORDERS[3], limit_s=90),
        shaped(ORDERS[4], exclude=("node1",)),
    ]
    found = batches(orders, gpus=True, largest=100)
    assert [len(made.orders) for made in found] == [2, 1, 1, 1]
    assert found[0].orders == (orders[0], orders[2])


def test_a_batch_of_one_has_its_attempts_name_and_no_task() -> None:
    [made] = batches([ORDERS[3]], gpus=False, largest=100)
    assert made.name == ORDERS[3].name
    assert not made.array
    [order] = made.numbered()
    assert (order.attempt.batch, order.attempt.task) == (made.name, None)
    assert made.task_id("12", 0) == "12"


def test_the_tasks_of_an_array_are_numbered_in_order() -> None:
    [made] = batches(ORDERS[:3], gpus=False, largest=100, at_once=2)
    assert made.array
    assert made.at_once == 2
    assert [order.attempt.task for order in made.numbered()] == [0, 1, 2]
    assert {order.attempt.batch for order in made.numbered()} == {made.name}
    assert [made.task_id("12", n) for n in range(3)] == ["12_0", "12_1", "12_2"]
    assert made.task_id("", 1) == ""


def test_the_name_of_an_array_is_determined_by_its_members() -> None:
    [one] = batches(ORDERS[:3], gpus=False, largest=100)
    [same] = batches(ORDERS[:3], gpus=False, largest=50, at_once=9)
    [other] = batches(ORDERS[:4], gpus=False, largest=100)
    assert one.name == same.name != other.name
    assert one.name.startswith("infx-r1-")


def grouped(orders: Sequence[Order], name: str = "mono-1") -> list[Order]:
    return [replace(order, job=replace(order.job, group=name)) for order in orders]


def test_a_group_is_one_job_whose_attempts_take_turns() -> None:
    mixed = [ORDERS[0], *grouped([shaped(ORDERS[n], tp=n) for n in (1, 2)]), ORDERS[3]]
    alone, group = batches(mixed, gpus=True, largest=100)
    assert (alone.orders, alone.array, alone.jobs) == ((ORDERS[0], ORDERS[3]), True, 2)
    assert (group.orders, group.array, group.in_turn) == (tuple(mixed[1:3]), False, True)
    assert (group.jobs, group.shape.gpus, group.shape.turns) == (1, 2, 2)
    assert group.shape.minutes == 2 * (1 + MARGIN_MIN)
    assert group.name.endswith("-group")
    assert {order.attempt.task for order in group.numbered()} == {None}
    assert [group.task_id("12", n) for n in (0, 1)] == ["12", "12"]


def test_two_groups_of_one_shape_are_two_jobs_and_one_part_is_like_any_other() -> None:
    orders = [*grouped(ORDERS[:2]), *grouped(ORDERS[2:4], "mono-2"), *grouped(ORDERS[4:5], "m")]
    found = batches(orders, gpus=False, largest=100)
    assert [len(made.orders) for made in found] == [2, 2, 1]
    assert len({made.name for made in found}) == 3
    assert (found[2].name, found[2].in_turn) == (ORDERS[4].name, False)


def test_a_group_takes_no_longer_than_the_partition_allows() -> None:
    orders = grouped([shaped(order, limit_s=600) for order in ORDERS[:4]])
    [whole] = batches(orders, gpus=False, largest=9)
    [capped] = batches(orders, gpus=False, largest=9, longest_s=1200)
    [alone] = batches(orders, gpus=False, largest=9, longest_s=60)
    assert [made.shape.minutes for made in (whole, capped, alone)] == [60, 25, 15]


def test_a_group_keeps_out_of_a_node_that_failed_any_of_it() -> None:
    nodes = (("b", "a"), ("c", "a"))
    orders = [replace(order, exclude=out) for order, out in zip(ORDERS, nodes, strict=False)]
    [made] = batches(grouped(orders), gpus=False, largest=9)
    assert made.shape.exclude == ("a", "b", "c")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4]), max_size=12), st.integers(1, 5))
def test_nothing_is_lost_twice_or_too_large(tps: list[int], largest: int) -> None:
    orders = [shaped(order, tp) for order, tp in zip(ORDERS, tps, strict=False)]
    found = batches(orders, gpus=True, largest=largest)
    assert all(1 <= len(made.orders) <= largest for made in found)
    assert sorted(o.name for made in found for o in made.orders) == [o.name for o in orders]
    assert len({made.name for made in found}) == len(found)
    for made in found:
        assert {job_shape(o.job, gpus=True) for o in made.orders} == {made.shape}
