"""How a shape is divided among ranks, and which divisions there are. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from infx.engine.shapes import ModelConfig

__all__ = ["SERVED", "kv_heads_of", "shape_of_rank", "undivided"]

# Ranks that are tested to agree with one.
SERVED = (1, 2, 4)


def shape_of_rank(shape: ModelConfig, ranks: int) -> ModelConfig:
    """Return the shape of one of ``ranks``: fewer heads, and narrower experts and MLPs.

    Where there are more ranks than kv heads, each has one, and several have the same.
    """
    return replace(
        shape,
        heads=shape.heads // ranks,
        kv_heads=max(1, shape.kv_heads // ranks),
        expert_size=shape.expert_size // ranks,
        shared_size=shape.shared_size // ranks,
        dense_size=shape.dense_size // ranks,
    )


def kv_heads_of(shape: ModelConfig, rank: int, ranks: int) -> range:
    """Return the kv heads whose cache ``rank`` keeps: those that its q heads read."""
    first = rank * shape.kv_heads // ranks
    return range(first, first + max(1, shape.kv_heads // ranks))


def undivided(shape: ModelConfig, ranks: int) -> str:
    """Return why ``shape`` cannot be divided among ``ranks``; empty when it can."""
    if ranks not in SERVED:
        return f"expected one of {', '.join(map(str, SERVED))}"
    if ranks > 1 and shape.simulated_ranks > 1:
        return f"{shape.name} is the slice of one of {shape.simulated_ranks} ranks already"
    return "; ".join(_misfits(shape, ranks))


def _misfits(shape: ModelConfig, ranks: int) -> Iterator[str]:
    for name in ("heads", "expert_size", "shared_size", "dense_size"):
        if getattr(shape, name) % ranks:
            yield f"{name} {getattr(shape, name)} of {shape.name} is no multiple of it"
    if shape.kv_heads % ranks and ranks % shape.kv_heads:
        yield f"it neither divides nor repeats the kv_heads {shape.kv_heads} of {shape.name}"
