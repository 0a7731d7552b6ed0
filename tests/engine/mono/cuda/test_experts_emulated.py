"""The router and the experts, compiled for the CPU, against the same layer in plain torch.

All blocks of a kernel run, one after another; few experts are chosen, or it would take minutes.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from infx.engine.mono.cuda.gave_up import WAITS
from infx.engine.mono.cuda.random_layer import make_weights
from infx.engine.mono.cuda.random_step import make_step
from infx.engine.mono.cuda.setting import SHAPE, Asked
from infx.engine.mono.shape import H200
from tests.engine.mono.cuda.emulated import EXPERTS, Emulated
from tests.engine.mono.cuda.plain_arms import choose_and_mix
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]
BLOCKS = range(H200.blocks)
CHOSEN = (3, 17, 18, 64, 127)  # experts that have weights, the shared one beside them
EMPTY = -1  # the word that no result is (kernels/mail.cuh)


@functools.cache
def build(rows: int, last_first: int = 0) -> Emulated:
    """Return a build, made once a run of the tests."""
    defines = {"ROWS": rows, "LAST_FIRST": last_first}
    return Emulated(Path(tempfile.mkdtemp()) / "build", EXPERTS, defines)


@functools.cache
def weights() -> Mapping[str, Tensor]:
    """Return a layer's weights; of the experts that nobody chooses there is only the room."""
    torch.set_num_threads(1)
    made = make_weights(5, "cpu", experts=len(CHOSEN))
    for name in ("up", "down"):
        few = made[name]
        made[name] = torch.empty((SHAPE.experts + 1, *few.shape[1:]), dtype=few.dtype)
        made[name][[*CHOSEN, SHAPE.experts]] = few
    made["router_bias"][list(CHOSEN)] += 2.0  # a chance is below 1
    return made


def fields_of(rows: int, pads: int) -> dict[str, Tensor]:
    """Return a step behind the output projection; rows differ by 100 in size."""
    draw = torch.Generator().manual_seed(rows)
    requests = [Asked(0, 1)] * (rows - pads)
    step = make_step(requests, rows, [[page] for page in range(rows)])
    size = torch.logspace(-1, 1, rows)[:, None]
    stream_out = torch.full((rows, SHAPE.hidden), torch.nan)
    fields = {**weights(), **step.tensors, "stream_out": stream_out}
    mid = torch.randn(rows, SHAPE.hidden, generator=draw) * size
    mid[fields["batch_ids"] < 0] = 0
    fields["mid"].copy_(mid)
    fields["mid_squares"].copy_(mid.square().view(rows, 128, 48).sum(-1).T)
    fields["mid_normed"].copy_(plain(fields)["mid_normed"])
    for name in ("logit_sums", "mids"):
        words(fields, name).fill_(EMPTY)
    return fields


def words(fields: dict[str, Tensor], name: str) -> Tensor:
    """Return a field as the words that other blocks wait for."""
    return fields[name].view(torch.int32)


def run(fields: dict[str, Tensor], *stages: str, last_first: int = 0) -> None:
    """Run all blocks of some stages of the unfused arm, one stage after another."""
    for stage in stages:
        kernels = build(len(fields["batch_ids"]), last_first)
        kernels.launch(f"unfused_{stage}", BLOCKS, fields)


def plain(fields: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what the experts make of a step's stream."""
    mine = fields | {
        name: fields[name].clone()
        for name in ("mid_normed", "logit_sums", "routing", "mids", "stream_out")
    }
    choose_and_mix(mine)
    return mine


def relative(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def compare(fields: dict[str, Tensor]) -> None:
    """See that routing, mids and the stream are those of plain torch."""
    wanted, live = plain(fields), fields["batch_ids"] >= 0
    routing, topk = fields["routing"], SHAPE.experts_per_token
    assert torch.equal(routing[:, :topk], wanted["routing"][:, :topk])
    assert not fields["stream_out"][~live].any()
    if not live.any():
        return
    assert relative(routing[live][:, topk:], wanted["routing"][live][:, topk:]) < 1e-5
    assert relative(fields["mids"][live].float(), wanted["mids"][live].float()) < 2**-8
    assert relative(fields["stream_out"][live], wanted["stream_out"][live]) < 2**-8


@pytest.mark.parametrize(
    ("rows", "pads", "last_first"),
    [(1, 0, 0), (2, 0, 1), (4, 4, 1), (8, 1, 0), (9, 0, 1), (16, 5, 0), (16, 5, 1)],
)
def test_the_experts_agree_with_torch(rows: int, pads: int, last_first: int) -> None:
    fields = fields_of(rows, pads)
    run(fields, "router", "up", "down", last_first=last_first)
    compare(fields)


@pytest.mark.parametrize(("rows", "pads"), [(2, 0), (16, 3)])  # one row merges partitions too
def test_the_output_projection_leaves_what_the_experts_read(rows: int, pads: int) -> None:
    fields, draw = fields_of(rows, pads), torch.Generator().manual_seed(1 + rows)
    fields["attended"].copy_(torch.randn(16, rows, 128, generator=draw))
    fields["attended_back"].copy_(torch.rand(16, rows, generator=draw))
    fields["stream_in"] = 3 * torch.randn(rows, SHAPE.hidden, generator=draw)
    for name in ("mid", "mid_normed", "mid_squares"):
        fields[name].fill_(torch.nan)
    run(fields, "o")
    mid, live = fields["mid"], fields["batch_ids"] >= 0
    assert (mid[live] - fields["stream_in"][live]).norm(dim=1).gt(0).all()
    assert not mid[~live].any()
    assert torch.equal(fields["mid_normed"], plain(fields)["mid_normed"])
    assert relative(fields["mid_squares"].sum(0), mid.square().sum(1)) < 1e-6
    run(fields, "router", "up", "down")
    compare(fields)


@pytest.mark.parametrize(("rows", "pads"), [(1, 0), (8, 3), (16, 5)])
def test_a_live_row_leaves_no_word_empty_and_a_pad_writes_no_mids(rows: int, pads: int) -> None:
    fields = fields_of(rows, pads)
    run(fields, "router", "up")
    live, mids = fields["batch_ids"] >= 0, words(fields, "mids")
    assert mids[live].ne(EMPTY).all()
    assert mids[~live].eq(EMPTY).all()
    assert words(fields, "logit_sums").ne(EMPTY).all()


@pytest.mark.parametrize(
    ("rows", "pads", "last_first"), [(1, 0, 0), (2, 2, 0), (4, 1, 1), (8, 0, 0)]
)
def test_a_wait_for_words_gives_the_bits_of_a_wait_for_blocks(
    rows: int, pads: int, last_first: int
) -> None:
    """Words come late, some later than those beside them (`looked_at` of emulated.h)."""
    fields = fields_of(rows, pads)
    run(fields, "router", "up", "down")
    names = ("mids", "routing", "stream_out")
    wanted = {name: fields[name].clone() for name in names}
    for name in ("routing", "stream_out"):
        fields[name].fill_(torch.nan)
    build(rows, last_first).launch("mail_experts", BLOCKS, fields)
    for name in names:
        assert torch.equal(words(fields, name), words(wanted, name)), name
    assert not fields["give_up"].any()


@pytest.mark.parametrize(("field", "wait"), [("logit_sums", "FOR_LOGITS"), ("mids", "FOR_MIDS")])
def test_a_wait_for_a_word_that_never_comes_ends(field: str, wait: str) -> None:
    fields, block = fields_of(2, 0), 5
    run(fields, "router", "up")
    words(fields, field)[-1, -1, -1] = EMPTY  # of mids: what block 95 makes
    build(2).launch("mail_experts", [block], fields)
    number = 1 + list(WAITS).index(wait)
    assert fields["give_up"].tolist() == [1, number, block, EMPTY]
