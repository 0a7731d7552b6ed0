"""Compiled layers have the interpreter's bits, and rows do not see their neighbours."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from infx.engine.kept import cache_folder
from infx.engine.mono.cpu.compiling import compile_builds
from infx.engine.mono.shape import CPU_GRAIN, MOST_ROWS, Caches, Grain, Kind
from tests.engine.mono.cpu.compiled_worlds import Compiled, CompiledWorld, vector_bytes
from tests.engine.mono.tiny_layers import FINE, TINY, Row, World, pad

# The first run on a machine compiles.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CACHES = [Caches(), Caches("bf16", "fp8"), Caches("fp8", "bf16"), Caches("mxfp4", "mxfp4")]
# Every K in several parts; a sum has one lane on a CPU.
PARTS = replace(FINE, lanes=1, down_lanes=1, folded_rows=0, merge_group=512)
Made = tuple[Kind, Caches, Grain, int]
WIDE: list[Made] = [("sparse", caches, CPU_GRAIN, MOST_ROWS) for caches in CACHES]
DENSE: list[Made] = [
    ("dense", CACHES[2], CPU_GRAIN, MOST_ROWS),
    ("sparse_dense", CACHES[0], CPU_GRAIN, MOST_ROWS),
]
NARROW: Made = ("sparse", CACHES[0], CPU_GRAIN, 4)
FINER: Made = ("sparse", CACHES[0], PARTS, 7)
ALL = [*WIDE, *DENSE, NARROW, FINER]


@pytest.fixture(scope="session")
def worlds() -> dict[Made, CompiledWorld]:
    """Return the worlds of all tests here, compiled beside each other."""
    made = {each: CompiledWorld(world(*each[:3]), each[3], cache_folder()) for each in ALL}
    compile_builds([each.build for each in made.values()], sys.stderr)
    return made


def world(kind: Kind, caches: Caches, grain: Grain) -> World:
    # MXFP4 has groups of 32.
    shape = replace(TINY, head_dim=32) if "mxfp4" in (caches.kv, caches.index) else TINY
    return World(kind=kind, caches=caches, shape=shape, grain=grain)


def name(each: Made) -> str:
    return f"{each[0]}-{each[1].kv}-{each[1].index}-{each[3]}"


def bits(made: CompiledWorld, ran: Compiled, rows: Sequence[Row], number: int) -> tuple[Any, ...]:
    """Return all that a row made: stream, routing, cache bytes."""
    kept = [
        vector_bytes(made.world, ran.cache, region, rows[number].slot, head)
        for region, head in vectors(made.world)
    ]
    stream, routing = ran.stream[number], ran.routing[number]
    routed = routing.tobytes() if made.world.kind == "sparse" else b""
    return (stream.tobytes(), routed, *kept)


def vectors(world: World) -> list[tuple[str, int]]:
    each = range(world.shape.kv_heads)
    both = [(region, head) for region in ("keys", "values") for head in each]
    return both if world.kind == "dense" else [*both, ("index_keys", 0)]


def agrees(made: CompiledWorld, rows: list[Row]) -> None:
    table = made.world.table(len(rows))
    ran, oracle = made.run(rows), made.world.run(rows, table=table)
    for number, row in enumerate(rows):
        assert ran.stream[number].tobytes() == oracle.result.stream[number].tobytes(), number
        if oracle.result.routing:
            assert tuple(ran.routing[number, 0].astype(int)) == oracle.result.routing[number]
        for region, head in vectors(made.world) if row.request >= 0 else []:
            ours = vector_bytes(made.world, ran.cache, region, row.slot, head)
            assert ours == getattr(oracle.cache, region)[row.slot, head], (region, number)


@pytest.mark.parametrize("each", [*WIDE, *DENSE], ids=name)
def test_a_layer_has_the_interpreters_bits(each: Made, worlds: dict[Made, CompiledWorld]) -> None:
    made = worlds[each]
    alone = made.world
    for count in (1, 2, 3, 7, 12):
        rows = [alone.row(request) for request in range(count)]
        # Verify rows of the first request, and pads between and after.
        verify = [alone.row(0, 1), alone.row(0, 2)]
        agrees(made, [rows[0], *verify, pad(), *rows[1:], pad()][:MOST_ROWS])


@pytest.mark.parametrize("each", [NARROW, FINER], ids=name)
@pytest.mark.parametrize("width", [1, 4])
def test_other_widths_and_parts_of_sums_have_the_interpreters_bits(
    each: Made, width: int, worlds: dict[Made, CompiledWorld]
) -> None:
    made = worlds[each]
    agrees(made, [made.world.row(request) for request in range(width)])


@pytest.mark.parametrize("each", [WIDE[0], *DENSE], ids=name)
def test_stages_called_one_by_one_have_monos_bits(
    each: Made, worlds: dict[Made, CompiledWorld]
) -> None:
    made = worlds[each]
    for count in range(1, MOST_ROWS + 1):
        rows = [made.world.row(request) for request in range(count)]
        one, other = made.run(rows, "mono"), made.run(rows, "unfused")
        assert all(bits(made, one, rows, i) == bits(made, other, rows, i) for i in range(count))


@pytest.mark.parametrize("each", [*WIDE, *DENSE], ids=name)
def test_a_rows_bits_do_not_depend_on_its_neighbours(
    each: Made, worlds: dict[Made, CompiledWorld]
) -> None:
    made = worlds[each]
    # The interpreter's caches take long to fill in the other formats.
    seeds, widths = (5, range(1, MOST_ROWS + 1)) if each == WIDE[0] else (1, (2, 7, MOST_ROWS))
    for seed in range(seeds):
        for width in widths:
            made.world.draw.seed(100 * seed + width)
            probe = made.world.row(0)
            alone = bits(made, made.run([probe], poison=0.0), [probe], 0)
            for place in sorted({0, width // 2, width - 1}):
                rows = company(made.world, probe, place, width)
                ran = made.run(rows)
                assert bits(made, ran, rows, place) == alone, (seed, width, place)


def test_a_narrower_build_has_the_wider_ones_bits(worlds: dict[Made, CompiledWorld]) -> None:
    wide, narrow = worlds[WIDE[0]], worlds[NARROW]
    rows = [wide.world.row(request) for request in range(4)]
    one, other = wide.run(rows), narrow.run(rows)
    assert all(bits(wide, one, rows, i) == bits(narrow, other, rows, i) for i in range(4))


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


@pytest.mark.parametrize("each", [WIDE[0], *DENSE], ids=name)
def test_verify_rows_equal_single_steps(each: Made, worlds: dict[Made, CompiledWorld]) -> None:
    made = worlds[each]
    rows = [made.world.row(2, ahead) for ahead in range(4)]
    together, cache = made.run(rows), None
    for number, row in enumerate(rows):
        single = made.run([row], cache=cache)
        cache = single.cache
        assert bits(made, together, rows, number) == bits(made, single, [row], 0), number


def test_pads_alone_write_zeros_and_no_cache(worlds: dict[Made, CompiledWorld]) -> None:
    made = worlds[WIDE[0]]
    before = made.run([pad()] * 5)
    empty = made.run([pad()])
    assert not before.stream.any()
    assert before.cache.kv.tobytes() == empty.cache.kv.tobytes()


def test_a_stream_may_be_written_in_place(worlds: dict[Made, CompiledWorld]) -> None:
    for each in (WIDE[0], *DENSE):
        made = worlds[each]
        rows = [made.world.row(request) for request in range(6)]
        assert made.run(rows).stream.tobytes() == made.run(rows, in_place=True).stream.tobytes()
