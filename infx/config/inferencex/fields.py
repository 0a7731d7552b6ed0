"""The keys of InferenceX's files: which mapping has which, of what type, from what on sensible.

``kind`` is what its validator refuses to do without; ``least`` is ours: the validator takes any
whole number, also a tensor parallelism of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from infx.config.inferencex.tree import Map, Seq

__all__ = [
    "AGENTIC",
    "AGENTIC_ROW",
    "BACKEND",
    "COMPONENT",
    "FIXED",
    "FIXED_ROW",
    "FRAMEWORKS",
    "HARDWARE",
    "LENGTHS",
    "MULTI_ENTRY",
    "MULTI_ROW",
    "PRECISIONS",
    "RUNNERS",
    "SCENARIOS",
    "SINGLE_ENTRY",
    "WORKER",
    "Field",
    "Shape",
]

PRECISIONS = ("fp4", "fp8", "bf16", "fp16", "int4", "int8", "nvfp4", "mxfp4")
"""Precisions that a benchmark script has been named by."""

FRAMEWORKS = (
    *("vllm", "sglang", "trt", "atom", "tilert", "llmd-vllm"),
    *("dynamo-vllm", "dynamo-sglang", "dynamo-trt"),
    *("sglang-disagg", "vllm-disagg", "atom-disagg"),
)
"""Frameworks that a launcher of InferenceX knows."""

LENGTHS = {"1k1k": (1024, 1024), "8k1k": (8192, 1024)}
"""Named input and output lengths, in tokens."""

Kind = Literal["text", "name", "whole", "size", "share", "flag", "list", "mapping"]

_EXPECTED: dict[Kind, str] = {
    "text": "text",
    "name": "text that is not empty",
    "whole": "a whole number",
    "size": "a whole number above 0",
    "share": "a number above 0, at most 1",
    "flag": "true or false",
    "list": "a list",
    "mapping": "a mapping",
}
_FREE = {"text", "whole", "flag", "list", "mapping"}
_TYPES: dict[Kind, tuple[type, ...]] = {
    "text": (str,),
    "name": (str,),
    "whole": (int,),
    "size": (int,),
    "share": (int, float),
    "flag": (bool,),
    "list": (Seq,),
    "mapping": (Map,),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One key: what its value must be, and whether it may be absent or null."""

    kind: Kind
    required: bool = False
    null: bool = False
    least: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return _EXPECTED[self.kind]

    def fault(self, value: Any) -> str:
        """Return the code of what is wrong with a value, or ``""``."""
        if type(value) not in _TYPES[self.kind]:
            return "" if value is None and self.null else "wrong-type"
        if self.choices and value not in self.choices:
            return "unknown-value"
        return "" if self.kind in _FREE or self._in_range(value) else "out-of-range"

    def _in_range(self, value: Any) -> bool:
        match self.kind:
            case "size":
                return bool(value > 0)
            case "share":
                return bool(0 < value <= 1)
        return bool(value)


class Shape(dict[str, Field]):
    """The keys of one mapping, and those that it needs."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        super().__init__(fields)
        self.required = tuple(key for key, field in fields.items() if field.required)


def _need(kind: Kind, least: int | None = None) -> Field:
    return Field(kind, required=True, least=least)


def _may(kind: Kind, least: int | None = None) -> Field:
    return Field(kind, null=True, least=least)


_SPECULATION = Field("text", choices=("mtp", "draft_model", "none"))
_ENTRY: dict[str, Field] = {
    "image": _need("text"),
    "model": _need("text"),
    "model-prefix": _need("text"),
    "precision": _need("text"),
    "framework": _need("text"),
    "runner": _need("text"),
    "multinode": _need("flag"),
    "disagg": Field("flag"),
    "router": _may("mapping"),
    "scenarios": _need("mapping"),
}
_CONC: dict[str, Field] = {
    "conc-list": _may("list"),
    "conc-start": _may("whole"),
    "conc-end": _may("whole"),
}
_TOPOLOGY: dict[str, Field] = {
    "pp": Field("size"),
    "dcp-size": Field("size"),
    "pcp-size": Field("size"),
}
_SINGLE = {"ep": _may("whole", 1), "dp-attn": _may("flag"), **_TOPOLOGY}
_TRANSFER = {"kv-p2p-transfer": _may("name")}
_PAIR = {"prefill": _need("mapping"), "decode": _need("mapping")}
_ROW = {"spec-decoding": _SPECULATION, "router": _may("mapping"), **_CONC}

SINGLE_ENTRY = Shape(_ENTRY)
MULTI_ENTRY = Shape({**_ENTRY, **_TRANSFER})
SCENARIOS = Shape({"fixed-seq-len": Field("list"), "agentic-coding": Field("list")})
FIXED = Shape(
    {"isl": _need("whole", 1), "osl": _need("whole", 1), "search-space": _need("list")},
)
AGENTIC = Shape({"search-space": _need("list"), "dram-utilization": _may("share")})
FIXED_ROW = Shape({"tp": _need("whole", 1), **_SINGLE, **_ROW})
MULTI_ROW = Shape({**_PAIR, **_TRANSFER, **_ROW})
AGENTIC_ROW = Shape(
    {
        "tp": _may("whole", 1),
        **_SINGLE,
        "prefill": _may("mapping"),
        "decode": _may("mapping"),
        "kv-offloading": Field("text", null=True, choices=("none", "dram")),
        "kv-offload-backend": _may("mapping"),
        **_TRANSFER,
        **_ROW,
    }
)
WORKER = Shape(
    {
        "num-worker": _need("whole", 0),
        "tp": _need("whole", 1),
        "ep": _need("whole", 1),
        "dp-attn": _need("flag"),
        **_TOPOLOGY,
        "hardware": _may("name"),
        "additional-settings": _may("list"),
    }
)
COMPONENT = Shape({"name": _need("name"), "version": _need("name")})
BACKEND = Shape({"name": _need("name"), "version": _may("name")})
RUNNERS = Shape({"labels": _need("mapping"), "hardware": Field("mapping")})
HARDWARE = Shape({"available-cpu-dram-mib": _need("size"), "gpus-per-node": _need("size")})
