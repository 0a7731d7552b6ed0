"""Compiled layers have the interpreter's bits, and rows do not see their neighbours."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from infx.engine.mono.cpu.compiled import cache_folder
from infx.engine.mono.shape import CPU_GRAIN, KINDS, MOST_ROWS, Caches, Kind
from tests.engine.mono.cpu.compiled_worlds import Compiled, CompiledWorld, vector_bytes
from tests.engine.mono.tiny_layers import FINE, TINY, Row, World, pad

pytestmark = pytest.mark.slow

CACHES = [Caches(), Caches("bf16", "fp8"), Caches("fp8", "bf16"), Caches("mxfp4", "mxfp4")]


@functools.cache
def world(kind: Kind = "sparse", caches: Caches = CACHES[0], fine: bool = False) -> World:
    # MXFP4 has groups of 32.
    shape = replace(TINY, head_dim=32) if "mxfp4" in (caches.kv, caches.index) else TINY
    return World(kind=kind, caches=caches, shape=shape, grain=FINE if fine else CPU_GRAIN)


@functools.cache
def compiled(width: int, *given: Any) -> CompiledWorld:
    return CompiledWorld(world(*given), width, cache_folder())


def bits(made: CompiledWorld, ran: Compiled, rows: Sequence[Row], number: int) -> tuple[Any, ...]:
    """Return all that a row made: stream, auxiliary state, routing, cache bytes."""
    kept = [
        vector_bytes(made.world, ran.cache, region, rows[number].slot, head)
        for region, head in vectors(made.world)
    ]
    stream, aux, routing = ran.stream[number], ran.aux[number], ran.routing[number]
    routed = routing.tobytes() if made.world.kind == "sparse" else b""
    return (stream.tobytes(), aux.tobytes(), routed, *kept)


def vectors(world: World) -> list[tuple[str, int]]:
    each = range(world.shape.kv_heads)
    both = [(region, head) for region in ("keys", "values") for head in each]
    return both if world.kind == "dense" else [*both, ("index_keys", 0)]


def agrees(made: CompiledWorld, rows: list[Row]) -> None:
    table = made.world.table(len(rows), tapped=True)
    ran, oracle = made.run(rows), made.world.run(rows, table=table)
    for number, row in enumerate(rows):
        assert ran.stream[number].tobytes() == oracle.result.stream[number].tobytes(), number
        assert ran.aux[number].tobytes() == oracle.result.aux[number].tobytes(), number
        if oracle.result.routing:
            assert tuple(ran.routing[number, 0].astype(int)) == oracle.result.routing[number]
        for region, head in vectors(made.world) if row.request >= 0 else []:
            ours = vector_bytes(made.world, ran.cache, region, row.slot, head)
            assert ours == getattr(oracle.cache, region)[row.slot, head], (region, number)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("caches", CACHES, ids=lambda c: f"{c.kv}-{c.index}")
def test_a_layer_has_the_interpreters_bits(kind: Kind, caches: Caches) -> None:
    made = compiled(MOST_ROWS, kind, caches)
    alone = made.world
    for count in (1, 2, 3, 7, 12):
        rows = [alone.row(request) for request in range(count)]
        # Verify rows of the first request, and pads between and after.
        verify = [alone.row(0, 1), alone.row(0, 2)]
        agrees(made, [rows[0], *verify, pad(), *rows[1:], pad()][:MOST_ROWS])


@pytest.mark.parametrize("kind", KINDS)
def test_the_narrow_build_has_the_interpreters_bits(kind: Kind) -> None:
    made = compiled(1, kind)
    agrees(made, [made.world.row(3)])
    agrees(made, [pad()])


@pytest.mark.parametrize("width", [1, 4, 7])
def test_sums_of_several_lanes_and_parts_have_the_interpreters_bits(width: int) -> None:
    made = compiled(width, "sparse", Caches(), True)
    agrees(made, [made.world.row(request) for request in range(width)])


@pytest.mark.parametrize("kind", KINDS)
def test_stages_called_one_by_one_have_monos_bits(kind: Kind) -> None:
    made = compiled(MOST_ROWS, kind)
    rows = [made.world.row(request) for request in range(9)]
    one, other = made.run(rows, "mono"), made.run(rows, "unfused")
    assert all(bits(made, one, rows, i) == bits(made, other, rows, i) for i in range(9))


@pytest.mark.parametrize("caches", CACHES, ids=lambda c: f"{c.kv}-{c.index}")
def test_a_rows_bits_do_not_depend_on_its_neighbours(caches: Caches) -> None:
    wide = compiled(MOST_ROWS, "sparse", caches)
    narrow = compiled(1, "sparse", caches)
    for seed in range(5):
        for width in range(1, MOST_ROWS + 1):
            wide.world.draw.seed(100 * seed + width)
            probe = wide.world.row(0)
            alone = bits(narrow, narrow.run([probe], poison=0.0), [probe], 0)
            for place in sorted({0, width // 2, width - 1}):
                rows = company(wide.world, probe, place, width)
                ran = wide.run(rows)
                assert bits(wide, ran, rows, place) == alone, (seed, width, place)


def company(world: World, probe: Row, place: int, width: int) -> list[Row]:
    """Return ``width`` rows with ``probe`` at ``place``: others random, pads, or its duplicates."""
    rows = []
    for number in range(1, width):
        fate = world.draw.randrange(4)
        row = world.row(number)
        shares = Row(row.request, row.position, row.pages, probe.stream)
        rows.append(pad() if fate == 0 else shares if fate == 1 else row)
    rows.insert(place, probe)
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_verify_rows_equal_single_steps(kind: Kind) -> None:
    made, alone = compiled(MOST_ROWS, kind), compiled(1, kind)
    rows = [made.world.row(2, ahead) for ahead in range(4)]
    together, cache = made.run(rows), None
    for number, row in enumerate(rows):
        single = alone.run([row], cache=cache)
        cache = single.cache
        assert bits(made, together, rows, number) == bits(alone, single, [row], 0), number


def test_pads_alone_write_zeros_and_no_cache() -> None:
    made = compiled(MOST_ROWS)
    before = made.run([pad()] * 5)
    empty = made.run([pad()])
    assert not before.stream.any()
    assert not before.aux.any()
    assert before.cache.kv.tobytes() == empty.cache.kv.tobytes()
