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

from infx.engine.mono.cuda.random_layer import make_weights
from infx.engine.mono.cuda.random_step import make_step
from infx.engine.mono.cuda.setting import SHAPE, Asked
from infx.engine.mono.shape import H200
from tests.engine.mono.cuda.emulated import EXPERTS, FOLLOWING, Emulated
from tests.engine.mono.cuda.plain_arms import choose_and_mix
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]
BLOCKS = range(H200.blocks)
CHOSEN = (3, 17, 18, 64, 127)  # experts that have weights, the shared one beside them
UNITS = 2**28  # of a logit as an integer (kernels/logits.cuh)


@functools.cache
def build(rows: int, **defines: int) -> Emulated:
    """Return a build, made once a run of the tests."""
    files = FOLLOWING if defines.get("FOLLOW") else EXPERTS
    if defines.get("LOGITS_IN_O"):
        names = [name for name in files["unfused.cu"] if name != "unfused_router"]
        files = {**files, "unfused.cu": ("unfused_qkv", *names)}
    return Emulated(Path(tempfile.mkdtemp()) / "build", files, {"ROWS": rows, **defines})


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
    """Return a step in front of the output projection; rows differ by 100 in size."""
    draw = torch.Generator().manual_seed(rows)
    requests = [Asked(0, 1)] * (rows - pads)
    step = make_step(requests, rows, [[page] for page in range(rows)])
    size = torch.logspace(-1, 1, rows)[:, None]
    step.tensors["attended"].copy_(torch.randn(16, rows, 128, generator=draw))
    step.tensors["attended_back"].copy_(torch.rand(16, rows, generator=draw))
    return {
        **weights(),
        **step.tensors,
        "stream_in": torch.randn(rows, SHAPE.hidden, generator=draw) * size,
        "stream_out": torch.full((rows, SHAPE.hidden), torch.nan),
    }


def with_mid(fields: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the step behind the router: the stream is what the projection left."""
    mid = torch.where(fields["batch_ids"][:, None] >= 0, fields["stream_in"], 0)
    fields["mid"].copy_(mid)
    fields["mid_squares"].copy_(mid.square().view(len(mid), 128, 48).sum(-1).T)
    wanted = plain(fields)
    fields["mid_normed"].copy_(wanted["mid_normed"])
    fields["logit_sums"].copy_(wanted["logit_sums"])
    fields["logit_totals"].copy_((UNITS * wanted["logit_sums"][0].double()).round())
    fields["up_counts"].zero_()
    return fields


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


@pytest.mark.parametrize(("rows", "pads"), [(1, 0), (2, 0), (4, 1), (16, 5)])
def test_up_and_down_agree_with_torch(rows: int, pads: int) -> None:
    fields = with_mid(fields_of(rows, pads))
    for stage in ("up", "down"):
        build(rows).launch(f"unfused_{stage}", BLOCKS, fields)
    compare(fields)


@pytest.mark.parametrize(("rows", "pads"), [(2, 0), (16, 3)])  # one row merges partitions too
def test_logits_are_summed_behind_the_output_projection(rows: int, pads: int) -> None:
    fields, kernels = fields_of(rows, pads), build(rows, LOGITS_IN_O=1)
    fields["logit_totals"].fill_(-77)
    kernels.launch("unfused_qkv", BLOCKS, fields)
    assert not fields["logit_totals"].any()
    kernels.launch("unfused_o", BLOCKS, fields)
    wanted, found = plain(fields), fields["logit_totals"].double() / UNITS
    assert relative(found, wanted["logit_sums"].sum(0)) < 2**-17
    for stage in ("up", "down"):
        kernels.launch(f"unfused_{stage}", BLOCKS, fields)
    assert torch.equal(fields["logit_sums"].sum(0), found.float())
    compare(fields)


def counts(fields: dict[str, Tensor]) -> list[int]:
    """Return the tasks of `up` by turn: the shared expert's, those of the chosen ones, no more."""
    ids = plain(fields)["routing"][:, : SHAPE.experts_per_token].long().flatten()
    rows = [int((fields["batch_ids"] >= 0).sum()), *ids[ids >= 0].bincount().tolist()]
    found = [96 * -(-count // 8) for count in [rows[0], *filter(None, rows[1:])]]
    return found + [0] * (len(fields["up_counts"]) - len(found))


@pytest.mark.parametrize(("rows", "pads"), [(1, 0), (4, 4), (9, 2)])
def test_down_follows_up_by_experts(rows: int, pads: int) -> None:
    fields = with_mid(fields_of(rows, pads))
    kernels = build(rows, LOGITS_IN_O=1, FOLLOW=1)
    kernels.launch("follow_up", BLOCKS, fields)
    assert fields["up_counts"].tolist() == counts(fields)
    kernels.launch("follow_down", BLOCKS, fields)
    compare(fields)


@pytest.mark.parametrize(
    ("rows", "dealt", "pads"), [(8, 2, 0), (16, 3, 0), (16, 3, 16), (16, 99, 4)]
)
def test_the_last_tasks_go_to_who_is_free(rows: int, dealt: int, pads: int) -> None:
    fields = with_mid(fields_of(rows, pads))
    kernels = build(rows, LOGITS_IN_O=1, FOLLOW=1, DEALT_TASKS=dealt)
    kernels.launch("follow_up", BLOCKS, fields)
    assert fields["up_counts"].tolist() == counts(fields)  # and no ticket is left to ask for
    kernels.launch("follow_down", BLOCKS, fields)
    compare(fields)


@pytest.mark.parametrize("last_first", [0, 1])
def test_a_task_behind_a_ticket_for_nothing_is_not_lost(last_first: int) -> None:
    """A block's warps ask for its tickets in any order: three tasks are left, and two get none."""
    fields = with_mid(fields_of(8, 0))
    fields["up_counts"][-1] = 96 * (len([n for n in counts(fields) if n]) - 1) - 3
    kernels = build(8, LOGITS_IN_O=1, FOLLOW=1, DEALT_TASKS=99, LAST_FIRST=last_first)
    kernels.launch("follow_up", BLOCKS[-1:], fields)  # it has no task of the shared expert
    assert fields["up_counts"][:-1].sum() == 3
