"""What a cache keeps its vectors as, and what that costs. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from infx.engine.shapes import MXFP4_GROUP, ModelConfig

__all__ = ["KINDS", "Kinds", "page_bytes"]

KINDS = ("fp32", "bf16", "fp8", "mxfp4")


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types of keys and values (``kv``) and of the indexer's keys (``index``), each of `KINDS`.

    ``kv`` fp8 has one float32 scale for each token and head; ``index`` fp8 has none.
    """

    kv: str = "fp32"
    index: str = "fp32"

    @classmethod
    def asked(cls, kv: str, index: str) -> Kinds:
        """Return the kinds of two axis values; ``auto`` is fp32."""
        return cls(*("fp32" if value == "auto" else value for value in (kv, index)))

    @property
    def kv_format(self) -> str:
        """The format of keys and values: a kind, with fp8 scaled."""
        return "fp8-scaled" if self.kv == "fp8" else self.kv


def page_bytes(shape: ModelConfig, kinds: Kinds, draft_layers: int = 0, features: int = 0) -> int:
    """Return the bytes of one page over all tensors of the cache (`KvCache.empty`)."""
    vectors = 2 * (shape.num_layers + draft_layers) * shape.kv_heads
    token = vectors * _vector_bytes(kinds.kv_format, shape.head_dim)
    sparse = shape.num_layers - shape.full_layers
    token += sparse * _vector_bytes(kinds.index, shape.head_dim)
    return shape.block_size * (token + 4 * features)


def _vector_bytes(form: str, dim: int) -> int:
    sizes = {
        "fp32": 4 * dim,
        "bf16": 2 * dim,
        "fp8": dim,
        "fp8-scaled": dim + 4,
        "mxfp4": dim // 2 + dim // MXFP4_GROUP,
    }
    return sizes[form]
