"""Choosing tokens from logits. Every draw has its own number, so batching changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.request import TokenLogprob

__all__ = ["Draw", "logprobs", "sample"]


@dataclass(frozen=True, slots=True)
class Draw:
    """How one row chooses: ``point`` in [0, 1) is its random number; ``banned`` ids never come."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    point: float = 0.0
    banned: frozenset[int] = frozenset()


def sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Return one id for each row of ``logits`` [n, vocabulary] by its draw."""
    logits = _ban(logits, draws)
    ids: list[int] = logits.argmax(-1).tolist()
    warm = [row for row, draw in enumerate(draws) if draw.temperature > 0]
    if warm:
        chosen = _sample_warm(logits[warm], [draws[row] for row in warm])
        for row, token in zip(warm, chosen, strict=True):
            ids[row] = token
    return ids


def logprobs(logits: Tensor, tokens: Sequence[int], count: int) -> list[TokenLogprob]:
    """Return the log-probability of ``tokens`` [n] and the ``count`` likeliest of each row.

    ``logits`` [n, vocabulary] as the model gave them, softmax in float32. Of equal ones the lower
    id stands first, as the greedy choice takes it.
    """
    if not tokens:
        return []
    every = logits.float().log_softmax(-1)
    own = every.gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()
    likeliest = every.sort(dim=-1, descending=True, stable=True)
    values, ids = likeliest.values[:, :count].tolist(), likeliest.indices[:, :count].tolist()
    return [
        TokenLogprob(token, logprob, _with(token, logprob, tuple(zip(*row, strict=True))))
        for token, logprob, *row in zip(tokens, own, ids, values, strict=True)
    ]


def _with(
    token: int, logprob: float, top: tuple[tuple[int, float], ...]
) -> tuple[tuple[int, float], ...]:
    return top if any(token == other for other, _ in top) else (*top, (token, logprob))


def _ban(logits: Tensor, draws: Sequence[Draw]) -> Tensor:
    if not any(draw.banned for draw in draws):
        return logits
    logits = logits.clone()
    for row, draw in enumerate(draws):
        logits[row, list(draw.banned)] = -torch.inf
    return logits


def _sample_warm(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Invert the cumulative probability, likeliest first, of the tokens that top_k and top_p keep.

    top_p keeps tokens until their sum reaches it, the one that reaches it included.
    """
    rows = [[float(d.temperature), d.top_p, d.top_k, d.point] for d in draws]
    temperature, top_p, top_k, point = torch.tensor(rows, dtype=torch.float64).T[..., None]
    # Below the best, so that a tiny temperature makes the others -inf and never divides inf.
    below = logits.double() - logits.amax(-1, keepdim=True)
    scaled = (below / temperature).softmax(-1)
    probability, ids = scaled.sort(dim=-1, descending=True, stable=True)
    before = probability.cumsum(-1) - probability
    rank = torch.arange(probability.shape[1])
    keep = (before < top_p) & ((rank < top_k) | (top_k == 0))
    keep[:, 0] = True
    total = (probability * keep).cumsum(-1)
    at = (total <= point * total[:, -1:]).sum(-1, keepdim=True)
    at = torch.minimum(at, keep.sum(-1, keepdim=True) - 1)
    chosen: list[int] = ids.gather(1, at)[:, 0].tolist()
    return chosen
