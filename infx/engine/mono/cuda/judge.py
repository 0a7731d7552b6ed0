"""Each stage of a layer against plain torch in float32, from what the stage itself was given.

A figure is ||d|| / ||reference||. Attention's stages have judges of their own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from infx.engine.mono.cuda.packing import (
    bf16_untiled,
    fp8_untiled,
    mxfp4_untiled,
    ups_behind_gates,
)
from infx.engine.mono.cuda.random_layer import (
    BLOCK,
    DIM,
    EXPERTS,
    HEADS,
    HIDDEN,
    ROTARY,
    TOPK,
    TOPK_BLOCKS,
    RandomLayer,
    Step,
)
from infx.engine.mono.cuda.scratch import QKV_HEADS, SHAPE

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["judge_attention", "judge_stages", "relative"]

EPS = SHAPE.norm_eps


def relative(found: Tensor, wanted: Tensor) -> float:
    """Return ||found - wanted|| / ||wanted||; NaN in ``found`` gives NaN."""
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def judge_stages(layer: RandomLayer, step: Step, stream: Tensor, out: Tensor) -> dict[str, float]:
    """Return the error of each stage after a layer ran on ``stream`` and wrote ``out``.

    ``experts``: the share of (row, slot) whose expert is not the reference's (0 but for near-ties).
    """
    import torch

    given, live = layer.tensors | step.tensors, step.tensors["batch_ids"] >= 0
    x = stream * given["attention_norm"]
    errors = {
        "qkv": relative(given["qkv_sums"].sum(0), x @ _fp8_weight(given, "qkv").T),
        "qkv-squares": relative(given["qkv_squares"].sum(0), stream.square().sum(-1)),
    }
    attended = given["merged"].transpose(0, 1).flatten(1)
    mid = stream + SHAPE.ranks * (attended @ _fp8_weight(given, "o").T)
    mid = torch.where(live[:, None], mid, 0)
    errors["o"] = relative(given["mid"], mid)
    own = given["mid"]
    errors["mid-squares"] = relative(given["mid_squares"].sum(0), own.square().sum(-1))
    normed = own * given["mlp_norm"]
    errors["mid-normed"] = relative(given["mid_normed"], normed)
    router = bf16_untiled(given["router"]).view(torch.bfloat16).float()
    errors["router"] = relative(given["logit_sums"].sum(0), normed @ router.T)
    factor = torch.rsqrt(own.square().mean(-1, keepdim=True) + EPS)
    errors |= _judge_routing(given, factor, live)
    errors |= _judge_experts(given, factor * normed, live, out)
    return errors


def _judge_routing(given: dict[str, Tensor], factor: Tensor, live: Tensor) -> dict[str, float]:
    import torch

    from infx.engine.model.experts import route

    logits = factor * given["logit_sums"].sum(0)
    eye = torch.eye(EXPERTS, device="cuda")
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
    wanted = given["mid"].clone()
    weights = given["routing"]
    for row in live.nonzero()[:, 0].tolist():
        chosen = [*weights[row, :TOPK].long().tolist(), EXPERTS]
        total = torch.zeros(HIDDEN, device="cuda")
        for slot, expert in enumerate(chosen):
            both = x[row] @ ups_behind_gates(_expert(given["up"], expert)).T
            wanted_mids[row, slot] = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
            down = _expert(given["down"], expert)
            factor = weights[row, TOPK + slot] if slot < TOPK else 1.0
            total += factor * (mids[row, slot] @ down.T)
        wanted[row] += SHAPE.ranks * total
    wanted[~live] = 0
    return {
        "up": relative(mids[live], wanted_mids[live]),
        "down": relative(out, wanted),
        "moved": relative(given["mid"], wanted),  # not an error: how much the experts add
    }


def _expert(pieces: Tensor, expert: int) -> Tensor:
    from infx.engine.quant import mxfp4_unpack

    return mxfp4_unpack(*mxfp4_untiled(pieces[expert]))


def _fp8_weight(given: dict[str, Tensor], name: str) -> Tensor:
    import torch

    numbers = fp8_untiled(given[name]).view(torch.float8_e4m3fn).float()
    return numbers * given[f"{name}_scale"][:, None]


def judge_attention(layer: RandomLayer, step: Step) -> dict[str, float]:
    """Return the error of attention's output from the projection's sums, over the fp8 caches.

    The caches must hold the step's own tokens already. ``blocks``: the share of chosen blocks that
    the reference does not choose.
    """
    import torch

    given = layer.tensors | step.tensors
    heads = _heads(given)
    pages, chosen = given["pages"].long(), given["chosen"]
    index_keys = given["index_keys"].view(torch.float8_e4m3fn).float().view(-1, BLOCK, DIM)
    keys, values = _cache(given, "key"), _cache(given, "value")
    wanted = torch.zeros(step.rows, HEADS, DIM, device="cuda")
    wrong = 0
    live = (given["batch_ids"] >= 0).nonzero()[:, 0].tolist()
    for row in live:
        own = int(given["positions"][row]) // BLOCK
        seen = torch.arange(step.pages_a_row * BLOCK, device="cuda") <= given["positions"][row]
        scores = (index_keys[pages[row]] @ heads[row, 17]).flatten().masked_fill(~seen, -torch.inf)
        best = scores.view(-1, BLOCK).amax(-1)
        best[own] = torch.inf
        blocks = best.topk(min(TOPK_BLOCKS, own + 1)).indices.sort().values
        wrong += len(set(blocks.tolist()) ^ (set(chosen[row].tolist()) - {-1})) // 2
        blocks = chosen[row][chosen[row] >= 0].long()
        at = (blocks[:, None] * BLOCK + torch.arange(BLOCK, device="cuda")).flatten()
        k, v = (c[pages[row, blocks]].reshape(-1, DIM) for c in (keys, values))
        score = heads[row, :HEADS] @ k.T / math.sqrt(DIM)
        score = score.masked_fill(at > given["positions"][row], -torch.inf)
        wanted[row] = torch.softmax(score, -1) @ v
    found = given["merged"].transpose(0, 1)
    return {
        "attention": relative(found[live], wanted[live]),
        "blocks": wrong / max(1, len(live) * TOPK_BLOCKS),
    }


def _cache(given: dict[str, Tensor], name: str) -> Tensor:
    import torch

    numbers = given[f"{name}s"].view(torch.float8_e4m3fn).float()
    return (numbers * given[f"{name}_scales"][:, None]).view(-1, BLOCK, DIM)


def _heads(given: dict[str, Tensor]) -> Tensor:
    """Return [rows, heads, dim] normed and turned, from the sums of the projection."""
    import torch

    sums = given["qkv_sums"].sum(0)
    factor = torch.rsqrt(given["qkv_squares"].sum(0) / HIDDEN + EPS)
    x = (sums * factor[:, None]).view(len(sums), QKV_HEADS, DIM)
    norm = torch.cat((given["head_norm"], torch.ones(1, DIM, device="cuda")))
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * norm
    half = ROTARY // 2
    cos, sin = (part[:, None] for part in torch.split(given["rotary"], half, dim=1))
    a, b = x[..., :half], x[..., half:ROTARY]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, x[..., ROTARY:]), dim=-1)
