"""The stages of layers with a dense MLP against plain torch, from what each stage was given.

A figure is ||found - wanted|| / ||wanted||.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import fp8_untiled, ups_behind_gates
from infx.engine.mono.shape import SHAPES

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LIMITS", "MIDS_SCALE", "judge_dense_mlp", "judge_projections", "normed_of", "relative"]

SHAPE = SHAPES["m3_tp4_rank"]
MIDS_SCALE = 1024.0  # of what lies between the matrices (kernels/dense.cuh)
TILE = 16
# The largest figure that is right: f16 keeps 2^-11 of a number, attention's operands bf16's 2^-8.
LIMITS = {
    **dict.fromkeys(("qkv", "qkv-squares", "o", "mid-squares", "mid-normed"), 2.0**-11),
    **dict.fromkeys(("dense-up", "dense-down"), 2.0**-10),
    "attention": 2.0**-8,
}


def relative(found: Tensor, wanted: Tensor) -> float:
    """Return ||found - wanted|| / ||wanted||; NaN in ``found`` gives NaN."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def normed_of(given: Mapping[str, Tensor]) -> Tensor:
    """Return the MLP's input [rows, hidden] as float32, before the norm's factor."""
    import torch

    back = torch.exp2(given["mid_exponents"].float() - 127)
    return given["mid_normed"].float() * back.repeat_interleave(TILE, dim=1)


def judge_projections(given: Mapping[str, Tensor], stream: Tensor) -> dict[str, float]:
    """Return the errors of the projections before and behind attention and of the MLP's input."""
    import torch

    live = given["batch_ids"] >= 0
    x = stream * given["attention_norm"]
    attended = given["merged"].transpose(0, 1).flatten(1)
    mid = stream + SHAPE.ranks * (attended @ _weight(given, "o").T)
    own = given["mid"]
    return {
        "qkv": relative(given["qkv_sums"].sum(0), x @ _weight(given, "qkv").T),
        "qkv-squares": relative(given["qkv_squares"].sum(0), stream.square().sum(-1)),
        "o": relative(own, torch.where(live[:, None], mid, 0)),
        "mid-squares": relative(given["mid_squares"].sum(0), own.square().sum(-1)),
        "mid-normed": relative(normed_of(given), own * given["mlp_norm"]),
    }


def judge_dense_mlp(given: Mapping[str, Tensor], out: Tensor) -> dict[str, float]:
    """Return the errors of the MLP's two stages; ``moved``, how much it adds, is no error."""
    import torch

    from infx.engine.model.layers import swiglu_oai

    live, mid = given["batch_ids"] >= 0, given["mid"]
    x = mid * given["mlp_norm"] * torch.rsqrt(mid.square().mean(-1, keepdim=True) + SHAPE.norm_eps)
    both = x @ ups_behind_gates(_weight(given, "up")).T
    wanted_mids = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
    mids = given["mids"].float() / MIDS_SCALE
    wanted = mid + SHAPE.ranks * (mids @ _weight(given, "down").T)
    wanted[~live] = 0
    return {
        "dense-up": relative(mids[live], wanted_mids[live]),
        "dense-down": relative(out, wanted),
        "moved": relative(mid, wanted),
    }


def _weight(given: Mapping[str, Tensor], name: str) -> Tensor:
    """Return float32 [outputs, inputs], in the order in which tiles have them."""
    import torch

    numbers = fp8_untiled(given[name]).view(torch.float8_e4m3fn).float()
    return numbers * given[f"{name}_scale"][:, None]
