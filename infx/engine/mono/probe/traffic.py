"""The bytes that a layer must read: what its floor is made of."""

from __future__ import annotations

from infx.engine.mono.shape import LayerShape
from infx.engine.mono.table import Table

__all__ = ["FLOOR", "layer_bytes"]

FLOOR = (
    "floor = (weights of attention, norms and router + (experts of the union + shared) x bytes of"
    " an expert + rows x (context index keys + chosen keys and values)) / copy bandwidth"
)
# Read once for each expert that some row chose, the shared one included; all else is read once.
EXPERT_REGIONS = ("up_weight", "down_weight")


def layer_bytes(table: Table, union: int, rows: int, context: int) -> int:
    """Return the bytes that a sparse layer of ``table`` reads, each once.

    ``union`` experts were chosen by some of ``rows`` rows, each of another request with ``context``
    tokens.
    """
    regions = [region for region in table.regions if region.space == "weight"]
    whole = sum(region.bytes for region in regions if region.name not in EXPERT_REGIONS)
    experts = sum(region.bytes for region in regions if region.name in EXPERT_REGIONS)
    one = experts // (table.shape.experts + 1)
    return whole + (union + 1) * one + rows * _row_bytes(table, context)


def _row_bytes(table: Table, context: int) -> int:
    shape: LayerShape = table.shape
    vector, index = table.caches.token_bytes(shape.head_dim)
    chosen = min(context + 1, shape.topk_blocks * shape.block)
    return (context + 1) * index + 2 * chosen * shape.kv_heads * vector
