"""The validator: every table that is built passes, and each fault alone is refused by its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.mono.check import FAULTS, check, check_family
from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import (
    CPU_GRAIN,
    GPU_GRAIN,
    H200,
    KINDS,
    MOST_ROWS,
    SHAPES,
    Caches,
    Formats,
    Kind,
    Machine,
    cpu,
)
from infx.engine.mono.sums import Sum
from infx.engine.mono.table import Access, Region, Span, Stage, Table, Wait
from infx.engine.mono.walk import main
from tests.engine.mono.tiny_layers import FINE, TINY, table, with_region, with_stage, with_sum

RANKED = replace(TINY, ranks=2)
VARIED = (
    "qkv_tile", "qkv_parts", "score_tile", "out_tile", "router_tile", "router_parts",
    "up_tile", "dense_tile", "chunk", "lanes", "narrow_rows", "merge_group",
)  # fmt: skip


def stage(made: Table, name: str) -> Stage:
    return made.stage(name)


def reading(made: Table, name: str, access: Access) -> Table:
    return with_stage(made, name, reads=(*made.stage(name).reads, access))


def writing(made: Table, name: str, access: Access) -> Table:
    return with_stage(made, name, writes=(*made.stage(name).writes, access))


def waiting(made: Table, name: str, *waits: Wait) -> Table:
    return with_stage(made, name, waits=(*made.stage(name).waits, *waits))


def adding(made: Table, region: Region) -> Table:
    return replace(made, regions=(*made.regions, region))


def without_reads(made: Table, name: str, region: str) -> Table:
    reads = tuple(read for read in made.stage(name).reads if read.region != region)
    return with_stage(made, name, reads=reads)


def named(made: Table, name: str, region: str) -> Access:
    return next(
        a for a in (*made.stage(name).reads, *made.stage(name).writes) if a.region == region
    )


def changed(made: Table, name: str, region: str, **fields: object) -> Table:
    """Return ``made`` with one write of one stage changed."""
    writes = (
        replace(write, **fields) if write.region == region else write  # type: ignore[arg-type]
        for write in made.stage(name).writes
    )
    return with_stage(made, name, writes=tuple(writes))


def count(made: Table, name: str) -> int:
    return made.stage(name).arrivals(made.machine.blocks)


def head_waits(made: Table, *waits: Wait) -> Table:
    return with_stage(made, "head", waits=waits)


BLOCKS = 3
TILES = 4
MUTANTS: dict[str, list[Callable[[Table], Table]]] = {
    "named-twice": [lambda t: replace(t, sums=(*t.sums, t.sum("qkv")))],
    "undeclared-region": [
        lambda t: reading(t, "o", Access("elsewhere", (Span(),))),
        lambda t: writing(t, "o", Access("elsewhere", (Span("tile"),))),
    ],
    "unused-region": [
        lambda t: adding(t, Region("idle", "weight", "", (1,), 4)),
        lambda t: writing(
            adding(t, Region("idle", "scratch", "select", (6, 2), 4, offset=1 << 20)),
            "select",
            Access("idle", (Span("row"), Span("group"))),
        ),
    ],
    "wrong-space": [
        lambda t: with_region(t, "mids", space="step"),
        lambda t: with_region(t, "qkv_sums", space="weight"),
        lambda t: with_region(t, "mid", space="out"),
        lambda t: with_region(t, "mids", exchange=True),
        lambda t: with_region(t, "o_ranks", exchange=False),
    ],
    "ping-pong": [
        lambda t: with_region(t, "stream_out", parity=0),
        lambda t: with_region(t, "stream_in", parity=1),
        lambda t: with_region(t, "stream_out", parity=None),
    ],
    "scratch-overlap": [
        lambda t: with_region(t, "mids", offset=t.region("partials").offset + 8),
        lambda t: with_region(t, "down_ranks", offset=t.region("o_ranks").bytes),
    ],
    "out-of-range": [
        lambda t: reading(t, "o", Access("mlp_norm", (Span("tile", 1),))),
        lambda t: reading(t, "o", Access("mlp_norm", (Span(), Span()))),
        lambda t: reading(t, "o", Access("mlp_norm", (Span("row"),))),
        lambda t: reading(t, "o", Access("mlp_norm", (Span(),), when=("tile", 3, 5))),
        lambda t: head_waits(t, *t.stage("head").waits, Wait("qkv", 4, Span("head", 1))),
    ],
    "two-writers": [
        lambda t: writing(t, "merge", Access("chosen", (Span("head", 0, 1), Span()))),
        lambda t: changed(t, "router", "mid_squares", when=None),
        lambda t: changed(
            with_region(t, "merged", tiles=(5,), tile_bytes=64),
            "merge",
            "merged",
            at=(Span("head", 0, 1, 2),),
        ),
        lambda t: writing(t, "o", named(t, "o", "mid")),
    ],
    "never-written": [
        lambda t: with_stage(t, "select", writes=()),
        lambda t: changed(t, "head", "queries", when=("head", 0, 3)),
        lambda t: with_region(t, "mids", tiles=(*t.region("mids").tiles[:2], 3)),
        lambda t: adding(
            reading(t, "o", Access("idle", (Span(),))),
            Region("idle", "scratch", "", (1,), 4, offset=1 << 20),
        ),
    ],
    "read-before-write": [
        lambda t: reading(t, "qkv", Access("chosen", (Span(), Span()))),
        lambda t: reading(t, "o", Access("mid", (Span(),))),
    ],
    "missing-wait": [
        lambda t: with_stage(t, "split", waits=()),
        lambda t: head_waits(t, Wait("qkv", count(t, "qkv"), Span("head"))),
        lambda t: head_waits(t, Wait("qkv", count(t, "qkv"), Span())),
        lambda t: with_stage(t, "router", waits=(Wait("o", 1, Span()),)),
        # A task that data leave out waits for nothing, so what it waited for is not passed on.
        lambda t: with_stage(t, "up", waits=(Wait("select", BLOCKS),)),
    ],
    "unknown-wait": [lambda t: waiting(t, "o", Wait("nobody", 1))],
    "self-wait": [lambda t: waiting(t, "o", Wait("o", 1, Span("tile")))],
    "later-wait": [lambda t: waiting(t, "o", Wait("down", BLOCKS))],
    "wrong-wait-count": [
        lambda t: with_stage(t, "down", waits=(Wait("up", BLOCKS - 1),)),
        lambda t: with_stage(t, "down", waits=(Wait("up", BLOCKS + 1),)),
        lambda t: with_stage(t, "down", waits=(Wait("up", BLOCKS, Span()),)),
        lambda t: waiting(t, "head", Wait("qkv", count(t, "qkv"))),
        lambda t: with_stage(t, "o", live=("row",)),
        lambda t: with_stage(
            with_stage(t, "o", group=("tile", 3)), "router", waits=(Wait("o", 3, Span(size=2)),)
        ),
    ],
    "not-placed": [lambda t: with_stage(t, "up", step=BLOCKS + 1)],
    "placed-twice": [lambda t: with_stage(t, "up", step=BLOCKS - 1)],
    "too-many-blocks": [lambda t: replace(t, machine=replace(t.machine, resident=2))],
    "too-much-shared": [lambda t: with_stage(t, "up", shared_bytes=(1 << 16) + 1)],
    "undeclared-sum": [lambda t: with_stage(t, "o", sums=(*t.stage("o").sums, "mystery"))],
    "unused-sum": [lambda t: replace(t, sums=(*t.sums, Sum("idle", 4)))],
    "impossible-sum": [
        lambda t: with_sum(t, "up", lanes=0),
        lambda t: with_sum(t, "up", merged_by="halving"),
        lambda t: with_sum(t, "combine", extent=0),
    ],
    "sum-order": [
        lambda t: with_sum(t, "down", dealt_by=("union_rank", "chunk")),
        lambda t: with_sum(t, "down", dealt_by=("row", "chunk")),
        lambda t: with_sum(t, "qkv", dealt_by=("width", "chunk")),
        lambda t: with_sum(t, "up", dealt_by=("block",)),
        lambda t: with_sum(t, "combine", merged_by="arrival"),
    ],
    "pads-live": [
        lambda t: with_stage(t, "up", live=("routed",)),
        lambda t: with_stage(t, "split", live=("row", "seen", "padded")),
    ],
}
CASES = [(code, mutate) for code, mutants in MUTANTS.items() for mutate in mutants]


@pytest.mark.parametrize(("code", "mutate"), CASES, ids=[code for code, _ in CASES])
def test_each_fault_is_refused_by_its_code_alone(
    code: str, mutate: Callable[[Table], Table]
) -> None:
    mutant = mutate(table(width=6, shape=RANKED))
    faults = check(mutant)
    assert {fault.code for fault in faults} == {code}
    assert all(fault.sentence for fault in faults)


@pytest.mark.parametrize("width", [1, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_no_wait_can_be_left_out(kind: Kind, width: int) -> None:
    made = table(kind, width, shape=RANKED)
    for stage in made.stages:
        for wait in stage.waits:
            left = tuple(other for other in stage.waits if other is not wait)
            faults = check(with_stage(made, stage.name, waits=left))
            assert {fault.code for fault in faults} == {"missing-wait"}, (stage.name, wait)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_mangled_table_is_judged_and_never_breaks_the_judge(data: st.DataObject) -> None:
    made = table(data.draw(st.sampled_from(KINDS)), 6, shape=RANKED)
    stage = data.draw(st.sampled_from(made.stages))
    other = data.draw(st.sampled_from(made.stages))
    region = data.draw(st.sampled_from(made.regions))
    mangled = data.draw(
        st.sampled_from(
            [
                with_stage(made, stage.name, reads=other.reads),
                with_stage(made, stage.name, writes=other.writes),
                with_stage(made, stage.name, waits=other.waits),
                with_stage(made, stage.name, axes=other.axes),
                with_stage(made, "qkv", group=("part", 1)),
                with_stage(made, stage.name, name=other.name),
                with_region(made, region.name, writer=stage.name),
                with_region(made, region.name, tiles=(*region.tiles, 2)),
                replace(made, stages=tuple(s for s in made.stages if s is not stage)),
                replace(made, stages=made.stages[::-1]),
                replace(made, regions=tuple(r for r in made.regions if r is not region)),
            ]
        )
    )
    assert mangled == made or check(mangled)


def test_every_code_has_a_test_that_makes_it() -> None:
    assert set(MUTANTS) | {"order-differs"} == set(FAULTS)


@pytest.mark.parametrize("name", ["mini", "m3_tp4_rank"])
@pytest.mark.parametrize("kind", KINDS)
def test_widths_that_add_in_different_orders_are_refused(name: str, kind: Kind) -> None:
    machine, grain = (cpu(1), CPU_GRAIN) if name == "mini" else (H200, GPU_GRAIN)
    tables = [
        make_table(SHAPES[name], kind, width, machine, grain) for width in range(1, MOST_ROWS + 1)
    ]
    assert not check_family(tables)
    tables[4] = with_sum(tables[4], "o", lanes=9)
    assert [fault.code for fault in check_family(tables)] == ["order-differs"]


@pytest.mark.parametrize("width", range(1, MOST_ROWS + 1))
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_width_pass(kind: Kind, width: int) -> None:
    formats = Formats("fp8", "bf16", "mxfp4")
    rank = make_table(
        SHAPES["m3_tp4_rank"], kind, width, H200, GPU_GRAIN, Caches("mxfp4", "fp8"), formats, True
    )
    assert check(rank) == []
    assert check(make_table(SHAPES["mini"], kind, width, cpu(2), CPU_GRAIN)) == []


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(1, MOST_ROWS),
    kind=st.sampled_from(KINDS),
    blocks=st.integers(1, 200),
    grain=st.builds(
        replace,
        st.just(FINE),
        **{name: st.integers(1, 40) for name in VARIED},
    ),
    ranks=st.integers(1, 4),
)
def test_any_grain_and_machine_give_a_table_that_passes(
    width: int, kind: Kind, blocks: int, grain: object, ranks: int
) -> None:
    machine = Machine(blocks, 1, blocks, 1 << 22)
    made = table(kind, width, machine=machine, grain=grain, shape=replace(TINY, ranks=ranks))
    assert check(made) == []


@pytest.mark.parametrize("width", [0, 17])
def test_a_width_outside_the_range_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"width {width}"):
        table(width=width)


@pytest.mark.slow
def test_the_walk_passes_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 5 * len(KINDS)
    assert all(line.split()[-1] == "0" for line in lines[1:])
