"""The axes: everything about a server or its load that a matrix may vary.

An axis is a named list of values or an expression over other axes. This dataclass is the single
list of them: the loader, the JSON Schema, the planner, the record and the report read its fields.
In YAML and on screen a name is written with hyphens; in expressions and in Python with underscores.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

__all__ = [
    "AXES",
    "SIZES",
    "VOCABULARY",
    "Axes",
    "is_computation",
    "is_load",
    "kebab",
    "snake",
    "value_type",
]

Kind = Literal["load", "computation", "capacity"]

VOCABULARY: dict[str, tuple[str, ...]] = {
    "mono": ("off", "on"),
    "kv_cache_dtype": ("auto", "fp32", "bf16", "fp8", "mxfp4"),
    "index_cache_dtype": ("auto", "fp32", "bf16", "fp8", "mxfp4"),
    "kv_offload": ("none", "dram"),
    "kv_offload_backend": ("auto", "native", "lmcache", "mooncake"),
}


def _axis(default: Any, kind: Kind, about: str, unit: str = "", least: int | None = None) -> Any:
    return field(
        default=default, metadata={"kind": kind, "about": about, "unit": unit, "least": least}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """One resolved value for each axis.

    ``kind`` in the metadata says what an axis changes: ``load`` (what the client asks),
    ``computation`` (what the server computes, so its accuracy), ``capacity`` (how much it holds).
    """

    conc: int = _axis(1, "load", "requests in flight", "requests", 1)
    queueing: bool = _axis(False, "load", "requests above max-num-seqs may wait, on purpose")
    tp: int = _axis(1, "computation", "tensor-parallel ranks", "ranks", 1)
    pp: int = _axis(1, "computation", "pipeline-parallel stages", "stages", 1)
    ep: int = _axis(1, "computation", "expert-parallel ranks", "ranks", 1)
    dp_attention: bool = _axis(False, "computation", "attention is data-parallel")
    mono: str = _axis("off", "computation", "fused batch-invariant decode layers")
    kv_cache_dtype: str = _axis("auto", "computation", "type of the cached keys and values")
    index_cache_dtype: str = _axis("auto", "computation", "type of the cached index keys")
    k: int = _axis(0, "computation", "speculative draft tokens a step (K)", "tokens", 0)
    block_size: int | None = _axis(None, "capacity", "tokens a cache page holds", "tokens", 1)
    max_num_seqs: int | None = _axis(None, "capacity", "requests a step may hold", "requests", 1)
    max_num_batched_tokens: int | None = _axis(
        None, "capacity", "tokens a step may hold", "tokens", 1
    )
    max_model_len: int | None = _axis(None, "capacity", "longest context", "tokens", 1)
    capture_sizes: tuple[int, ...] = _axis(
        (), "capacity", "padded decode widths (CUDA-graph capture sizes)", "rows", 1
    )
    prefix_caching: bool | None = _axis(None, "capacity", "reuse cached prefixes across requests")
    chunked_prefill: bool | None = _axis(None, "capacity", "prompts are computed in pieces")
    kv_offload: str = _axis("none", "capacity", "where cold cache pages go")
    kv_offload_backend: str = _axis("auto", "capacity", "what moves them")
    kv_offload_gb: int | None = _axis(None, "capacity", "host memory for them, all ranks", "GB", 1)


AXES: dict[str, Field[Any]] = {axis.name: axis for axis in fields(Axes)}


SIZES = "tuple[int, ...]"
"""The type of an axis that holds a list of sizes."""


def value_type(name: str) -> str:
    """Return the type of the axis's values, None aside: "int", "bool", "str", or `SIZES`."""
    return str(AXES[name].type).removesuffix(" | None")


def is_load(name: str) -> bool:
    """Return True when the axis changes what the client asks, not the server."""
    return bool(AXES[name].metadata["kind"] == "load")


def is_computation(name: str) -> bool:
    """Return True when the axis changes what the server computes, so possibly its answers."""
    return bool(AXES[name].metadata["kind"] == "computation")


def kebab(name: str) -> str:
    """Return the spelling of a name in YAML and on screen: ``max-num-seqs``."""
    return name.replace("_", "-")


def snake(name: str) -> str:
    """Return the spelling of a name in expressions and in Python: ``max_num_seqs``."""
    return name.replace("-", "_")
