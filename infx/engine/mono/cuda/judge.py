"""Each stage of a layer against plain torch in float32, from what the stage itself was given.

A figure is ||d|| / ||reference|| where nothing else is said; 0 is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.judge_attention import judge_attention
from infx.engine.mono.cuda.judge_dense import fp8_weight, judge_dense_mlp, relative
from infx.engine.mono.cuda.packing import (
    bf16_untiled,
    mxfp4_untiled,
    ups_behind_gates,
)
from infx.engine.mono.cuda.random_layer import Layer
from infx.engine.mono.cuda.random_step import Step
from infx.engine.mono.cuda.setting import SHAPE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["faults", "judge_layer", "relative"]

EPS, TOPK = SHAPE.norm_eps, SHAPE.experts_per_token
# Of a number to bf16, of one to f16; of sums in float32. An H200's largest figures (docs/mono.md)
# are 0.7, 0.4 and 0.3 of these.
ROUNDING, F16, SUMS = 2.0**-8, 2.0**-11, 2.0**-17
# The largest figure that is right; what is not named here is no error.
LIMITS = {
    **dict.fromkeys(("queries", "caches", "own-blocks", "blocks", "pads", "experts"), 0.0),
    "scores": 1e-4,
    **dict.fromkeys(("attention", "mid-normed", "up"), ROUNDING),
    **dict.fromkeys(("qkv", "attended", "o", "dense-normed"), F16),
    "dense-up": 2 * F16,  # on inputs in f16, and kept in it
    **dict.fromkeys(("qkv-squares", "mid-squares", "router", "weights"), SUMS),
    **dict.fromkeys(("down", "dense-down"), SUMS),
}


def faults(figures: Mapping[str, float]) -> list[str]:
    """Return the names of figures beyond their limit; NaN is beyond any."""
    return [n for n, figure in figures.items() if n in LIMITS and not figure <= LIMITS[n]]


def judge_layer(
    before: Layer, layer: Layer, step: Step, stream: Tensor, out: Tensor
) -> dict[str, float]:
    """Return the figures of all stages after ``layer`` ran on ``stream`` and wrote ``out``.

    ``before`` has the caches that it began with. The stage `merge` must have run.
    """
    given, live = layer.weights | step.tensors, step.tensors["batch_ids"] >= 0
    judge_mlp = _judge_experts_of if step.kind == "sparse" else judge_dense_mlp
    figures = _judge_projections(given, live, stream) | judge_mlp(given, live, out)
    return figures | judge_attention(before, layer, step)


def _judge_projections(given: dict[str, Tensor], live: Tensor, stream: Tensor) -> dict[str, float]:
    """Return the errors of both projections, and of squares for norms."""
    import torch

    x = stream * given["attention_norm"]
    attended = given["merged"].transpose(0, 1).flatten(1)
    mid = stream + SHAPE.ranks * (attended @ fp8_weight(given, "o").T)
    own = given["mid"]
    return {
        "qkv": relative(given["qkv_sums"].sum(0), x @ fp8_weight(given, "qkv").T),
        "qkv-squares": relative(given["qkv_squares"].sum(0), stream.square().sum(-1)),
        "o": relative(own, torch.where(live[:, None], mid, 0)),
        "mid-squares": relative(given["mid_squares"].sum(0), own.square().sum(-1)),
    }


def _judge_experts_of(given: dict[str, Tensor], live: Tensor, out: Tensor) -> dict[str, float]:
    """Return the errors from the MLP's input on.

    ``experts``: the share of (row, slot) whose expert is not the reference's (0 but for near-ties).
    """
    import torch

    own = given["mid"]
    normed = own * given["mlp_norm"]
    router = bf16_untiled(given["router"]).view(torch.bfloat16).float()
    factor = torch.rsqrt(own.square().mean(-1, keepdim=True) + EPS)
    errors = {
        "mid-normed": relative(given["mid_normed"], normed),
        "router": relative(given["logit_sums"].sum(0), normed @ router.T),
    }
    errors |= _judge_routing(given, factor, live)
    return errors | _judge_experts(given, factor * normed, live, out)


def _judge_routing(given: dict[str, Tensor], factor: Tensor, live: Tensor) -> dict[str, float]:
    import torch

    from infx.engine.model.experts import route

    logits = factor * given["logit_sums"].sum(0)
    eye = torch.eye(SHAPE.experts, device=logits.device)
    chosen, weight = route(logits, eye, given["router_bias"], TOPK, SHAPE.routed_scale)
    found = given["routing"]
    ids = torch.where(live[:, None], chosen, -1).float()
    return {
        "experts": float((found[:, :TOPK] != ids).float().mean()),
        "weights": relative(found[live][:, TOPK:], weight[live]),
    }


def _judge_experts(
    given: dict[str, Tensor], x: Tensor, live: Tensor, out: Tensor
) -> dict[str, float]:
    """Judge `up` on the MLP's input, and `down` on the numbers that `up` left."""
    import torch

    from infx.engine.model.layers import swiglu_oai

    mids, wanted_mids = given["mids"].float(), torch.zeros_like(given["mids"], dtype=torch.float)
    wanted, routing = given["mid"].clone(), given["routing"]
    last = len(given["up"]) - 1  # the shared expert, whose weight is 1
    ids = routing[:, :TOPK].nan_to_num(-1).long().clamp(-1, last - 1)
    ids = torch.nn.functional.pad(ids, (0, 1), value=last)
    weight = torch.nn.functional.pad(routing[:, TOPK:], (0, 1), value=1.0)
    for expert in sorted(set(ids[live].flatten().tolist())):
        rows, slots = ((ids == expert) & live[:, None]).nonzero().unbind(1)
        both = x[rows] @ ups_behind_gates(_expert(given["up"], expert)).T
        wanted_mids[rows, slots] = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
        down = mids[rows, slots] @ _expert(given["down"], expert).T
        wanted[rows] += SHAPE.ranks * weight[rows, slots][:, None] * down
    wanted[~live] = 0
    return {
        "up": relative(mids[live], wanted_mids[live]),
        "down": relative(out, wanted),
        "moved": relative(given["mid"], wanted),  # not an error: how much the experts add
    }


def _expert(pieces: Tensor, expert: int) -> Tensor:
    from infx.engine.quant import mxfp4_unpack

    return mxfp4_unpack(*mxfp4_untiled(pieces[expert]))
