"""Words that every rank hears of every rank: the channel of mono's consensus."""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist

from infx.engine.mono.consensus import Gather

__all__ = ["BUILD_LIMIT_S", "words_of_all"]

# Ranks meet after each has compiled a width: 23 s of a core alone on this arm, minutes on a full
# machine. The limit of the layers' sums would take a rank that still compiles for a dead one.
BUILD_LIMIT_S = 600.0
# Of one rank's refusal; more is cut off.
MOST_BYTES = 4096


def words_of_all(limit_s: float = BUILD_LIMIT_S) -> Gather:
    """Return a function: this rank's words -> those of all, in rank order.

    Collective, after `infx.engine.ranks.exchange.join`, as is each call of what it returns; that
    raises RuntimeError when a rank is not there within ``limit_s``.
    """
    group = dist.new_group(backend="gloo", timeout=timedelta(seconds=limit_s))

    def gather(words: str) -> list[str]:
        own = _packed(words)
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own, group=group)
        return [bytes(part.tolist()).rstrip(b"\0").decode(errors="ignore") for part in parts]

    return gather


def _packed(words: str) -> torch.Tensor:
    data = words.encode()[:MOST_BYTES]
    return torch.tensor([*data.ljust(MOST_BYTES, b"\0")], dtype=torch.uint8)
