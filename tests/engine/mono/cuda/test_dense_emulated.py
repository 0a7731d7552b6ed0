"""The projections and the dense MLP, compiled for the CPU, against torch at true shapes.

Some blocks of each kernel run; what they write is compared. A whole stage takes ten seconds.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest
import torch
from torch import Tensor

from infx.engine.model.layers import swiglu_oai
from infx.engine.mono.cuda.dense_layer import DENSE_SIZE, HIDDEN, dense_mlp, dense_scratch
from infx.engine.mono.cuda.judge_dense import MIDS_SCALE, fp8_weight, normed_of, relative
from infx.engine.mono.cuda.packing import fp8_tiles, ups_behind_gates
from infx.engine.mono.shape import KINDS
from infx.engine.quant import fp8_quantise
from tests.engine.mono.cuda.emulated import DENSE_LAYER, Emulated
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("g++")]
RUN = (0, 77, 127)  # blocks; the last four of 132 have no tile
FEATURES = torch.cat([torch.arange(48 * block, 48 * block + 48) for block in RUN])
PAIRS = torch.cat([torch.arange(24 * block, 24 * block + 24) for block in RUN])
PAD = 2


@functools.cache
def build(rows: int) -> Emulated:
    """Return a build, made once a run of the tests."""
    numbers = {"ROWS": rows, "LAYER_KIND": KINDS.index("dense")}
    return Emulated(Path(tempfile.mkdtemp()) / "build", DENSE_LAYER, numbers)


@functools.cache
def weights() -> dict[str, Tensor]:
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(1)
    o, o_scale = fp8_quantise(torch.randn(HIDDEN, 2048, generator=draw), -1)
    return dense_mlp(draw) | {
        "o": fp8_tiles(o.view(torch.uint8), 1),
        "o_scale": o_scale[:, 0].contiguous(),
        "mlp_norm": 1 + 0.1 * torch.randn(HIDDEN, generator=draw),
    }


def fields_of(rows: int) -> dict[str, Tensor]:
    """Return a step whose third row is a pad; features of the stream differ by 10^4 in size."""
    draw = torch.Generator().manual_seed(2)
    sizes = torch.logspace(-3, 1, HIDDEN)[torch.randperm(HIDDEN, generator=draw)]
    ids = torch.arange(16, dtype=torch.int32)
    ids[PAD] = -1
    stream = torch.randn(16, HIDDEN, generator=draw) * torch.logspace(-2, 2, 16)[:, None] * sizes
    fields = weights() | dense_scratch(rows, "dense", "cpu")
    return fields | {
        "batch_ids": ids[:rows].clone(),
        "pages": torch.zeros(rows, 1, dtype=torch.int32),
        "stream_in": stream[:rows].clone(),
        "stream_out": torch.full((rows, HIDDEN), torch.nan),
        "mid": torch.full((rows, HIDDEN), torch.nan),
        "mid_squares": torch.full((128, rows), torch.nan),
        "attended": torch.randn(16, 16, 128, generator=draw).half()[:, :rows].contiguous(),
        "attended_back": torch.rand(16, 16, generator=draw)[:, :rows].contiguous(),
    }


def with_mid(rows: int) -> dict[str, Tensor]:
    """Return a step behind the output projection: the stream is what that left."""
    fields = fields_of(rows)
    mid = fields["stream_in"].clone()
    mid[fields["batch_ids"] < 0] = 0
    normed = (mid * fields["mlp_norm"]).view(rows, -1, 16)
    back = torch.exp2(normed.abs().amax(-1).clamp_min(2.0**-100).log2().floor() - 14)
    fields["mid"] = mid
    fields["mid_normed"] = (normed / back[..., None]).half().view(rows, HIDDEN)
    fields["mid_exponents"] = (back.log2() + 127).to(torch.uint8)
    fields["mid_squares"] = mid.square().view(rows, 128, 48).sum(-1).T.contiguous()
    return fields


@pytest.mark.parametrize("rows", [1, 8, 16])
def test_the_output_projection_keeps_the_input_of_a_dense_mlp(rows: int) -> None:
    fields = fields_of(rows)
    build(rows).launch("unfused_o", RUN, fields)
    attended = fields["attended"].float() * fields["attended_back"][..., None]
    mid = (
        fields["stream_in"] + 4 * attended.transpose(0, 1).flatten(1) @ fp8_weight(weights(), "o").T
    )
    mid[fields["batch_ids"] < 0] = 0
    found = fields["mid"][:, FEATURES]
    assert relative(found, mid[:, FEATURES]) < 1e-5
    wanted = found * fields["mlp_norm"][FEATURES]
    # 2^-11 of the largest of a tile's numbers, whatever the others are.
    error = (normed_of(fields)[:, FEATURES] - wanted).abs().view(rows, -1, 16)
    assert bool((error <= wanted.abs().view(rows, -1, 16).amax(-1, True) * 2**-11).all())
    squares = found.square().view(rows, len(RUN), 48).sum(-1).T
    assert relative(fields["mid_squares"][list(RUN)], squares) < 1e-6


@pytest.mark.parametrize("rows", [1, 8, 16])
def test_up_and_down_agree_with_torch(rows: int) -> None:
    fields = with_mid(rows)
    build(rows).launch("unfused_dense_up", (*RUN, 130), fields)
    mid, live = fields["mid"], fields["batch_ids"] >= 0
    x = mid * fields["mlp_norm"] * torch.rsqrt(mid.square().mean(-1, keepdim=True) + 1e-6)
    mids = swiglu_oai(x @ ups_behind_gates(fp8_weight(weights(), "up")).T, 1.702, 7.0)
    found = fields["mids"].float() / MIDS_SCALE
    assert relative(found[live][:, PAIRS], mids[live][:, PAIRS]) < 2**-10
    assert not found[~live][:, PAIRS].any()
    fields["mids"] = (MIDS_SCALE * mids).half()
    build(rows).launch("unfused_dense_down", (*RUN, 130), fields)
    wanted = mid + 4 * (fields["mids"].float() / MIDS_SCALE) @ fp8_weight(weights(), "down").T
    wanted[~live] = 0
    assert relative(fields["stream_out"][:, FEATURES], wanted[:, FEATURES]) < 1e-6


def test_a_rows_bits_are_those_of_any_width() -> None:
    found = {}
    for rows in (1, 8, 9, 16):
        fields = with_mid(rows)
        build(rows).launch("unfused_dense_up", RUN[:1], fields)
        mids = fields["mids"][:, PAIRS[:24]].clone()
        fields["mids"] = torch.arange(DENSE_SIZE).remainder(97).half().expand(rows, -1).contiguous()
        build(rows).launch("unfused_dense_down", RUN[:1], fields)
        found[rows] = (mids, fields["stream_out"][:, FEATURES[:48]])
    for rows in (1, 8, 9):
        assert all(map(torch.equal, found[rows], (part[:rows] for part in found[16])))


def test_numbers_between_the_matrices_fit_f16() -> None:
    """The largest is (7 + 1) 7: what lies between is written without a scale of its own."""
    both = torch.tensor([[1e6, 1e6], [1e6, -1e6], [-0.7, 1e6]])
    largest = float(swiglu_oai(both, 1.702, 7.0).abs().max())
    assert largest <= 56.0
    assert MIDS_SCALE * largest < torch.finfo(torch.float16).max
