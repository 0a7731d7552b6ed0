"""Steps and caches of a bench: where rows stand, what they see, which tokens are there."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.engine.mono.cuda.random_layer import make_caches
from infx.engine.mono.cuda.random_step import deal_pages, held_slots, make_step, picked
from infx.engine.mono.cuda.setting import KINDS, Asked, Setting
from infx.engine.mono.cuda.world import Rank

CONTEXT = 300


@pytest.mark.parametrize(
    ("width", "each", "pads", "rows"),
    [
        (1, 4, 0, [1]),
        (16, 4, 0, [4, 4, 4, 4]),
        (16, 8, 0, [8, 8]),
        (10, 4, 0, [4, 4, 2]),
        (16, 1, 7, [1] * 9),
        (16, 4, 3, [4, 4, 4, 1]),
    ],
)
def test_rows_of_a_request_stand_together(
    width: int, each: int, pads: int, rows: list[int]
) -> None:
    requests = Setting(context=CONTEXT, rows_per_request=each, pads=pads).requests(width)
    assert [asked.rows for asked in requests] == rows
    assert {asked.tokens for asked in requests} == {CONTEXT}


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 16), st.sampled_from([1, 2, 4, 8]), st.integers(0, 7))
def test_a_step_has_its_rows_at_the_end_of_their_requests(width: int, each: int, pads: int) -> None:
    pads = min(pads, width - 1)
    setting = Setting(context=CONTEXT, rows_per_request=each, pads=pads)
    widest = Setting(context=CONTEXT, rows_per_request=each).requests(16)
    tables = deal_pages(widest, 1)
    step = make_step(setting.requests(width), width, tables)
    ids, positions = step.tensors["batch_ids"].tolist(), step.tensors["positions"].tolist()
    assert step.live == width - pads
    assert ids[width - pads :] == [-1] * pads
    for number in set(ids[: step.live]):
        own = [p for p, one in zip(positions, ids, strict=True) if one == number]
        assert own == list(range(CONTEXT - len(own), CONTEXT))
    for row in range(step.live):
        page = step.tensors["pages"][row, positions[row] // 128]
        assert step.tensors["slots"][row] == page * 128 + positions[row] % 128
        assert page == tables[ids[row]][positions[row] // 128]


def test_picked_rows_keep_their_numbers_and_get_scratch_of_their_own() -> None:
    tables = deal_pages((Asked(10, 3), Asked(200)), 1)
    step = make_step((Asked(10, 3), Asked(200)), 5, tables)
    few = picked(step, [1, 3])
    assert few.rows == 2
    for name in ("batch_ids", "positions", "slots", "pages", "rotary"):
        assert torch.equal(few.tensors[name], step.tensors[name][[1, 3]])
    assert few.tensors["mid"].shape == (2, 6144)
    assert few.tensors["mid"].isnan().all()


@pytest.mark.parametrize("kind", KINDS)
def test_caches_hold_the_tokens_of_requests_and_nan_elsewhere(kind: str) -> None:
    requests = (Asked(130), Asked(1))
    tables = deal_pages(requests, 2)
    slots = held_slots(requests, tables)
    pages = 1 + sum(map(len, tables))
    for store in make_caches(3, slots, pages, kind, kind):
        numbers = store.read(torch.arange(pages))
        there = torch.zeros(pages * 128, dtype=torch.bool)
        there[slots] = True
        assert there.sum() == 133
        assert numbers[there].isfinite().all()
        assert numbers[~there].isnan().all()


def test_a_ranks_steps_share_the_pages_of_the_widest(monkeypatch: pytest.MonkeyPatch) -> None:
    from infx.engine.mono.cuda import world

    def only_caches(
        seed: int, slots: torch.Tensor, pages: int, kv: str, index: str, kind: str
    ) -> object:
        return world.Layer({}, *make_caches(seed, slots, pages, kv, index))

    monkeypatch.setattr(world, "make_layer", only_caches)
    rank = Rank(Setting(context=CONTEXT, rows_per_request=4), 2, "cpu")
    narrow, wide = rank.world(2), rank.world(16)
    assert narrow.step.tables == wide.step.tables[:1]
    assert len(narrow.layers) == len(narrow.args) == len(narrow.streams) - 1 == 2
    assert torch.equal(narrow.streams[0], wide.streams[0][:2])
    assert rank.world(2, Setting(context=CONTEXT, pads=1)).step.live == 1
