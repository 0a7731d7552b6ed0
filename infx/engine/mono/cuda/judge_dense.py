"""The stages of a dense MLP against plain torch in float32, from what each was given.

A figure is ||d|| / ||reference||.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import fp8_untiled, ups_behind_gates
from infx.engine.mono.cuda.scratch import SHAPE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MIDS_SCALE", "fp8_weight", "judge_dense_mlp", "normed_of", "relative"]

MIDS_SCALE = 1024.0  # of what lies between the matrices (kernels/dense.cuh)
TILE = 16


def relative(found: Tensor, wanted: Tensor) -> float:
    """Return ||found - wanted|| / ||wanted||; NaN in ``found`` gives NaN."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def fp8_weight(given: Mapping[str, Tensor], name: str) -> Tensor:
    """Return a matrix as float32 [outputs, inputs], in the order in which tiles have them."""
    import torch

    numbers = fp8_untiled(given[name]).view(torch.float8_e4m3fn).float()
    return numbers * given[f"{name}_scale"][:, None]


def normed_of(given: Mapping[str, Tensor]) -> Tensor:
    """Return a dense MLP's input [rows, hidden] as float32, before the norm's factor."""
    import torch

    back = torch.exp2(given["mid_exponents"].float() - 127)
    return given["mid_normed"].float() * back.repeat_interleave(TILE, dim=1)


def judge_dense_mlp(given: Mapping[str, Tensor], live: Tensor, out: Tensor) -> dict[str, float]:
    """Return the errors of the MLP's input and two stages; ``moved``, how much it adds, is none."""
    import torch

    from infx.engine.model.layers import swiglu_oai

    mid = given["mid"]
    normed = mid * given["mlp_norm"]
    x = normed * torch.rsqrt(mid.square().mean(-1, keepdim=True) + SHAPE.norm_eps)
    both = x @ ups_behind_gates(fp8_weight(given, "up")).T
    wanted_mids = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
    mids = given["mids"].float() / MIDS_SCALE
    wanted = mid + SHAPE.ranks * (mids @ fp8_weight(given, "down").T)
    wanted[~live] = 0
    return {
        "dense-normed": relative(normed_of(given), normed),
        "dense-up": relative(mids[live], wanted_mids[live]),
        "dense-down": relative(out, wanted),
        "moved": relative(mid, wanted),
    }
