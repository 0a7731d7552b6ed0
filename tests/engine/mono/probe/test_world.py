"""The rows of a probe are steps that an engine could run, whatever the seed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.mono.probe.rows import Row
from infx.engine.mono.probe.world import COMPANIES, MOST_DRAFTS, World, WorldStep
from infx.engine.mono.shape import SHAPES, LayerShape
from tests.engine.mono.tiny_layers import TINY

SEEDS = st.integers(0, 10_000)


def assert_runs(shape: LayerShape, world: World, rows: tuple[Row, ...]) -> None:
    live = [row for row in rows if row.live]
    slots = [row.slot(shape.block) for row in live]
    assert len(set(slots)) == len(slots)
    for row in rows:
        assert 0 <= row.position < shape.reach
        assert row.position < len(row.pages) * shape.block
        assert all(0 < page < world.pages - 1 for page in row.pages)
        assert row.stream.shape == (shape.hidden,)
    order = [row.request for row in live]
    assert sum(a != b for a, b in pairwise(order)) == len(set(order)) - 1


@pytest.mark.parametrize("shape", [TINY, SHAPES["mini"]], ids=["tiny", "mini"])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, width=st.integers(1, 16), drafts=st.integers(1, MOST_DRAFTS))
def test_steps_could_be_an_engines(shape: LayerShape, seed: int, width: int, drafts: int) -> None:
    world = World(shape, seed)
    step, verify = world.step(width), world.verify_step(drafts)
    assert len(step.rows) == width
    for made in (step, verify, world.padded_step(width)[0]):
        assert_runs(shape, world, made.rows)
        assert made.live
    assert sorted(step.probes.values()) == sorted({0, width // 2, width - 1})
    ((number, first),) = verify.probes.items()
    own = verify.rows[first : first + drafts + 1]
    assert [row.position for row in own] == list(range(own[0].position, own[0].position + len(own)))
    assert {row.request for row in own} == {number}


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, width=st.integers(1, 16))
def test_a_probe_is_the_same_row_in_every_step(seed: int, width: int) -> None:
    world, again = World(TINY, seed), World(TINY, seed)
    for number, place in world.step(width).probes.items():
        row, alone = again.step(width).rows[place], world.probe(number)
        assert (row.request, row.position, row.pages) == (number, alone.position, alone.pages)
        assert row.stream.tobytes() == alone.stream.tobytes()


def sorts(step: WorldStep, world: World) -> set[str]:
    probes = {row.stream.tobytes(): row for row in map(world.probe, range(3))}
    found = set()
    for place, row in enumerate(step.rows):
        if place in step.probes.values():
            continue
        like = probes.get(row.stream.tobytes())
        if not row.live:
            found.add("pad")
        elif like is not None:
            twin = row.position == like.position
            found.add("duplicate" if twin else "sharer")
        else:
            found.add("long" if row.position > 20 * world.shape.block else "request")
    return found


@pytest.mark.parametrize("seed", range(len(COMPANIES)))
def test_each_sort_of_company_has_its_turn(seed: int) -> None:
    world = World(SHAPES["mini"], seed)
    found = sorts(world.step(16), world)
    assert found == {world.sort} if world.sort != "mixed" else len(found) > 2


def test_a_duplicate_reads_what_its_probe_reads() -> None:
    world = World(TINY, COMPANIES.index("duplicate"))
    slots, vectors = world.history()
    assert len(set(slots.tolist())) == len(slots)
    at = {slot: keys.tobytes() for slot, keys in zip(slots.tolist(), vectors["keys"], strict=True)}
    step = world.step(16)
    for place, row in enumerate(step.rows):
        if place in step.probes.values():
            continue
        original = next(
            p for p in map(world.probe, range(3)) if p.stream.tobytes() == row.stream.tobytes()
        )
        assert row.slot(TINY.block) != original.slot(TINY.block)
        for position in range(row.position):
            ours, theirs = (replace(r, position=position).slot(TINY.block) for r in (row, original))
            assert at[ours] == at[theirs]


def test_every_row_finds_its_context_written() -> None:
    world = World(TINY, 3)
    written = set(world.history()[0].tolist())
    for width in (1, 7, 16):
        for row in world.step(width).rows:
            before = {replace(row, position=p).slot(TINY.block) for p in range(row.position)}
            assert before <= written
            assert row.slot(TINY.block) not in written or not row.live


def test_pads_stand_where_other_rows_were() -> None:
    step, before = World(TINY, 1).padded_step(8)
    assert len(step.live) == 3
    for now, was in zip(step.rows, before, strict=True):
        assert was.live
        assert np.array_equal(now.stream, was.stream)
