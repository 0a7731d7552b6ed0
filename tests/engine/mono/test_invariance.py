"""A row's bits depend on that row alone: the plan's promise, kept by the interpreter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from infx.engine.mono.arithmetic import vector
from infx.engine.mono.check import check
from infx.engine.mono.shape import KINDS, MOST_ROWS, Caches, Kind, Machine
from infx.engine.mono.table import Table
from infx.engine.mono.task import Hooks
from tests.engine.mono.tiny_layers import TINY, Row, World, pad, with_stage, with_sum

SOME_WIDTHS = (2, 5, 16)


def company(world: World, probe: Row, count: int, draw: random.Random) -> list[Row]:
    """Return ``count`` rows of every sort: requests, pads, one that shares experts, a duplicate."""
    made: list[Row] = []
    for request in range(1, count + 1):
        sort = draw.choice(["request", "request", "pad", "sharer", "duplicate"])
        if sort == "pad":
            made.append(pad())
        elif sort == "duplicate":
            made.append(replace(probe, request=request))
        else:
            row = world.row(request)
            made.append(replace(row, stream=probe.stream) if sort == "sharer" else row)
    return made


def probes_hold(kind: Kind, width: int, seed: int, caches: Caches | None = None) -> None:
    caches = caches or Caches()
    # MXFP4 has groups of 32.
    shape = replace(TINY, head_dim=32) if "mxfp4" in (caches.kv, caches.index) else TINY
    world, draw = World(kind, caches=caches, shape=shape), random.Random(seed)
    probe = world.row(0)
    alone = world.run([probe]).bits(0)
    for place in {0, width // 2, width - 1}:
        others = company(world, probe, width - 1, draw)
        rows = [*others[:place], probe, *others[place:]]
        assert world.run(rows).bits(place) == alone, (kind, width, place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", SOME_WIDTHS)
def test_a_row_among_others_is_the_row_alone(kind: Kind, width: int) -> None:
    probes_hold(kind, width, seed=width)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", range(1, MOST_ROWS + 1))
def test_a_row_among_others_is_the_row_alone_at_every_width(kind: Kind, width: int) -> None:
    for seed in range(3):
        probes_hold(kind, width, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", ["bf16", "fp8", pytest.param("mxfp4", marks=pytest.mark.slow)])
def test_small_caches_keep_it_too(kind: Kind, kept: str) -> None:
    probes_hold(kind, 6, seed=1, caches=Caches(kept, kept))


@pytest.mark.parametrize("kind", KINDS)
def test_verify_rows_are_single_steps(kind: Kind) -> None:
    world = World(kind)
    rows = [world.row(3, ahead) for ahead in range(4)]
    together = world.run([world.row(1), *rows, pad(), world.row(2)])
    cache = world.cache()
    for number, row in enumerate(rows):
        single = world.run([row], cache=cache)
        assert single.bits(0) == together.bits(number + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 2, 40])
def test_any_legal_interleaving_gives_the_same_bits(kind: Kind, blocks: int) -> None:
    world = World(kind)
    rows = [world.row(0), world.row(1), world.row(1, 1), pad(), world.row(2), world.row(4)]
    first = world.run(rows)
    machine = Machine(blocks, 1, blocks, 1 << 16)
    table = world.table(len(rows), machine=machine)
    assert not check(table)
    for seed in range(2):
        other = world.run(rows, table=table, seed=seed)
        assert [other.bits(i) for i in range(6)] == [first.bits(i) for i in range(6)]


@pytest.mark.parametrize("kind", KINDS)
def test_poison_changes_nothing(kind: Kind) -> None:
    world = World(kind)
    rows = [world.row(0), pad(), world.row(1), world.row(2), world.row(2, 1)]
    first = world.run(rows)
    for poison in (0.0, 1e30, float("-inf")):
        rows[1] = pad(poison)
        other = world.run(rows, hooks=Hooks(poison=poison))
        assert [other.bits(i) for i in (0, 2, 3, 4)] == [first.bits(i) for i in (0, 2, 3, 4)]


def test_a_pad_leaves_nothing_and_its_row_is_zero() -> None:
    world = World()
    row = world.row(0)
    padded, exact = world.run([pad(), row, pad()]), world.run([row])
    assert padded.cache == exact.cache
    assert set(padded.result.stream[0]) == {0.0}
    assert padded.result.routing[0] == (-1, -1)


def reads(world: World, rows: Sequence[Row], table: Table | None = None) -> list[tuple[str, int]]:
    """Return which tiles of experts a step reads."""
    heard: list[tuple[str, int]] = []

    def hear(region: str, tile: tuple[int, ...]) -> None:
        if region in ("up_weight", "down_weight"):
            heard.append((region, tile[0]))

    world.run(rows, table=table, hooks=Hooks(weight=hear))
    return heard


def test_pads_read_no_expert() -> None:
    world = World(seed=2)
    rows = [world.row(i) for i in range(5)]
    exact = reads(world, rows)
    # The pads are other requests' rows in all but their batch id.
    pads = [replace(world.row(i), request=-1) for i in range(6, 14)]
    padded = reads(world, [*pads[:4], *rows, *pads[4:]])
    assert sorted(padded) == sorted(exact)
    assert len({expert for _, expert in exact}) < world.shape.experts + 1


def test_a_wide_step_reads_an_expert_once_for_all_its_rows() -> None:
    world = World()
    row = world.row(0)
    twins = [replace(row, request=i) for i in range(6)]
    tiles = world.table(6).stage("up").extent("tile")
    ups = [tile for tile in reads(world, twins) if tile[0] == "up_weight"]
    assert len(ups) == tiles * world.shape.slots


def test_mutation_chunks_dealt_by_the_rank_in_the_union_change_rows() -> None:
    world = World()
    rows = [world.row(i) for i in range(8)]

    def mutant(width: int) -> Table:
        made = world.table(width)
        return with_sum(made, "down", dealt_by=("union_rank", "chunk"), lanes=3)

    assert [fault.code for fault in check(mutant(8))] == ["sum-order"]
    together = world.run(rows, table=mutant(8))
    alone = [world.run([row], table=mutant(1)).bits(0) for row in rows]
    assert [together.bits(i) for i in range(8)] != alone


def test_mutation_pads_kept_in_the_union_are_read() -> None:
    world = World(seed=2)
    rows = [world.row(0)]
    pads = [replace(world.row(i), request=-1) for i in range(6, 12)]
    mutant = with_stage(world.table(7), "up", live=("routed",))
    assert [fault.code for fault in check(mutant)] == ["pads-live"]
    kept = {expert for _, expert in reads(world, [*rows, *pads], mutant)}
    assert kept > {expert for _, expert in reads(world, [*rows, *pads])}


def test_mutation_a_combine_in_arrival_order_moves_from_run_to_run() -> None:
    world = World()
    rows = [world.row(i) for i in range(6)]
    mutant = with_sum(world.table(6), "combine", lanes=world.shape.slots, merged_by="arrival")
    assert [fault.code for fault in check(mutant)] == ["sum-order"]
    runs = [world.run(rows, table=mutant, seed=seed) for seed in range(4)]
    assert len({run.bits(0)[0] for run in runs}) > 1


def test_ranks_are_added_in_their_order() -> None:
    shape = replace(World().shape, ranks=3)
    world = World(shape=shape)
    row = world.row(0)
    given = [1e8, -1e8, 1.0]

    def parts(order: Sequence[float]) -> Hooks:
        return Hooks(exchange=lambda region, tile, own: [vector([x] * len(own)) for x in order])

    in_order, other = (
        world.run([row], hooks=parts(given)),
        world.run([row], hooks=parts(given[::-1])),
    )
    assert in_order.bits(0)[0] != other.bits(0)[0]
    assert world.run([row, world.row(1)], hooks=parts(given)).bits(0) == in_order.bits(0)


def test_a_tapped_layer_gives_its_own_stream() -> None:
    world = World()
    result = world.run([world.row(0)], table=world.table(1, tapped=True)).result
    assert result.aux == result.stream
