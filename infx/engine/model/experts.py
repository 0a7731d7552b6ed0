"""The mixture of experts: sigmoid routing with a correction bias, then the chosen experts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from infx.engine.model.layers import swiglu_oai

__all__ = ["mix", "route"]


def route(
    x: Tensor, router: Tensor, bias: Tensor, topk: int, scale: float
) -> tuple[Tensor, Tensor]:
    """Return chosen experts [n, topk] and their weights [n, topk] for rows ``x`` [n, hidden].

    The bias decides who is chosen, not with which weight; ties go to the lower expert; the weights
    of a row sum to ``scale``.
    """
    probability = torch.sigmoid(x @ router)
    order = (probability + bias).sort(dim=-1, descending=True, stable=True).indices
    chosen = order[:, :topk]
    weight = probability.gather(1, chosen)
    return chosen, scale * weight / weight.sum(-1, keepdim=True)


def mix(
    x: Tensor, chosen: Tensor, weight: Tensor, up: Tensor, down: Tensor, alpha: float, limit: float
) -> Tensor:
    """Return Σ weight · expert(x) [n, hidden], added in the row's own order of choice.

    Rows are dealt into one tray for each expert, as deep as the fullest needs: three batched
    products whatever the number of rows.
    """
    (rows, topk), experts, hidden = chosen.shape, up.shape[0], x.shape[1]
    expert = chosen.reshape(-1)
    seen = one_hot(expert, experts).cumsum(0)
    place = seen.gather(1, expert[:, None])[:, 0] - 1
    tray = x.new_zeros(experts, int(seen[-1].max()), hidden)
    tray[expert, place] = x.repeat_interleave(topk, dim=0)
    done = torch.bmm(swiglu_oai(torch.bmm(tray, up), alpha, limit), down)
    pairs = done[expert, place].view(rows, topk, hidden)
    return (weight[..., None] * pairs).sum(1)
