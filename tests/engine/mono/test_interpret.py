"""The interpreter refuses what a table does not say, and shows what a wrong table does."""

from __future__ import annotations

import pytest

from infx.engine.mono.interpret import DeadlockError
from infx.engine.mono.shape import KINDS, Kind, Machine
from infx.engine.mono.table import Wait
from infx.engine.mono.task import Task, TraceError
from tests.engine.mono.tiny_layers import World, with_region, with_stage


def test_an_undeclared_read_is_refused() -> None:
    world = World()
    made = world.table(2)
    fewer = tuple(read for read in made.stage("o").reads if read.region != "stream_in")
    with pytest.raises(TraceError, match="reads stream_in"):
        world.run([world.row(0), world.row(1)], table=with_stage(made, "o", reads=fewer))


def test_an_undeclared_write_is_refused() -> None:
    world = World()
    made = with_stage(world.table(1), "router", writes=())
    with pytest.raises(TraceError, match="writes mid_squares"):
        world.run([world.row(0)], table=made)


def test_an_undeclared_sum_is_refused() -> None:
    world = World()
    with pytest.raises(TraceError, match="sum down undeclared"):
        world.run([world.row(0)], table=with_stage(world.table(1), "down", sums=("router_parts",)))


def test_a_region_of_the_wrong_size_is_refused() -> None:
    world = World()
    with pytest.raises(TraceError, match="is given"):
        world.run([world.row(0)], table=with_region(world.table(1), "mids", tile_bytes=4))


def test_a_tile_that_is_written_twice_is_refused() -> None:
    world = World()
    made = world.table(1)
    twice = with_stage(made, "merge" if made.has("merge") else "o", base=0, step=1)
    with pytest.raises(TraceError, match="written twice"):
        world.run([world.row(0)], table=twice)


def test_a_wait_for_a_later_stage_hangs_and_is_seen() -> None:
    world = World()
    made = world.table(1)
    waits = (*made.stage("head").waits, Wait("split", made.machine.blocks))
    with pytest.raises(DeadlockError, match="blocks wait"):
        world.run([world.row(0)], table=with_stage(made, "head", waits=waits))


@pytest.mark.parametrize("stage", ["head", "select", "split", "o", "router", "up", "down"])
def test_without_its_waits_a_stage_goes_wrong_in_some_interleaving(stage: str) -> None:
    world = World()
    longest = max(range(16), key=world.contexts.__getitem__)
    rows = [world.row(longest), world.row(1)]
    made = world.table(2, machine=Machine(30, 1, 30, 1 << 16))
    right, hasty = world.run(rows).bits(0), with_stage(made, stage, waits=())
    wrong = 0
    for seed in range(6):
        try:
            wrong += world.run(rows, table=hasty, seed=seed).bits(0) != right
        except (TraceError, ValueError):
            # Routes and blocks that poison chose do not exist.
            wrong += 1
    assert wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 6])
def test_a_table_declares_nothing_that_is_not_touched(
    kind: Kind, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(kind)
    made = world.table(width, tapped=True)
    touched: set[tuple[str, str]] = set()
    declared = Task._declared

    def note(task: Task, region: str, tile: tuple[int, ...], reading: bool) -> None:
        touched.add((task._stage.name, region))
        declared(task, region, tile, reading)

    monkeypatch.setattr(Task, "_declared", note)
    world.run([world.row(i) for i in range(width)], table=made)
    idle = {
        (stage.name, access.region)
        for stage in made.stages
        for access in (*stage.reads, *stage.writes)
    } - touched
    # What the step says reaches a task by other ways than tiles.
    assert {region for _, region in idle} <= {"rows", "pages", "rotary"}
