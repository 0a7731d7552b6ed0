"""Acceptance lengths of a draft on the target's own greedy texts.

A guess is compared with the text itself, given the text up to it. That is exact for greedy
verification: as long as every guess before was right, text and guesses are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.train.draft import Draft
from infx.engine.train.evaluation import Texts
from infx.engine.train.layer import Mode
from infx.engine.train.target import Target

__all__ = ["Acceptance", "acceptance", "matches"]

TEXTS = 8
"""Texts whose guesses are made at once."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Mean tokens a step emits with ``k`` drafts, and the share of steps that accept each draft."""

    k: int
    length: float
    rates: tuple[float, ...]


def acceptance(found: list[Tensor], k: int) -> Acceptance:
    """Return the acceptance of walking each text of ``found`` (see `matches`) by k drafts.

    The last step of a text emits what is left of it.
    """
    steps = emitted = 0
    by_draft = [0] * k
    for right in found:
        at, last = 0, len(right) - 1
        accepted = right[:, :k].cumprod(1).sum(1).tolist()
        while at < last:
            for draft in range(accepted[at]):
                by_draft[draft] += 1
            step = min(accepted[at] + 1, last - at)
            emitted, steps, at = emitted + step, steps + 1, at + step
    return Acceptance(k, emitted / steps, tuple(count / steps for count in by_draft))


@torch.no_grad()
def matches(target: Target, draft: Draft, texts: Texts) -> list[Tensor]:
    """Return for each text bool [tokens, depth]: is guess d after output token i right."""
    pairs = list(zip(texts.prompts, texts.outputs, strict=True))
    parts = range(0, len(pairs), TEXTS)
    return [found for i in parts for found in _matches(target, draft, pairs[i : i + TEXTS])]


def _matches(
    target: Target, draft: Draft, pairs: list[tuple[list[int], list[int]]]
) -> list[Tensor]:
    device, block = draft.embed.device, target.shape.block_size
    width = -(-max(len(p) + len(o) for p, o in pairs) // block) * block + block
    most = max(len(output) for _, output in pairs)
    tokens = torch.tensor([[*p, *o, *[0] * (width - len(p) - len(o))] for p, o in pairs])
    # Base i: the known text ends with output token i.
    bases = [[min(len(p) + i, len(p) + len(o) - 1) for i in range(most)] for p, o in pairs]
    tokens, rows = tokens.to(device), torch.tensor(bases, device=device)
    taps = target(tokens, Mode(), tapped=draft.tapped).taps
    guesses = draft(tokens, taps, rows).argmax(-1).cpu()
    return [_right(guesses[:, i], torch.tensor(o)) for i, (_, o) in enumerate(pairs)]


def _right(guesses: Tensor, output: Tensor) -> Tensor:
    """Return bool [tokens, depth] of guesses [depth, bases]; past the text's end nothing is."""
    count, depth = len(output), len(guesses)
    right = torch.zeros(count, depth, dtype=torch.bool)
    for d in range(min(depth, count - 1)):
        right[: count - 1 - d, d] = guesses[d, : count - 1 - d] == output[d + 1 :]
    return right
