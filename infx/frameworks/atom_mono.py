"""What ATOM's mono layers of MiniMax-M3 need, so that a plan can say no.

ATOM itself says it at its start, in one line of its log, and serves without mono then. Source:
atom/models/minimax_m3/mono/dispatch.py and atom/mono/runtime/deployment.py of ROCm/ATOM.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from infx.domain.point import Arm
from infx.frameworks.base import MONO_ROWS, Refusal

__all__ = ["mono_refusals"]

TP = 4
BLOCK = 128
CONTEXT = 1 << 20
CACHES = ("fp8", "mxfp4")
QUANTISED = "ptpc_fp8"
SHARED = "ATOM_FUSE_MXFP8_SHARED_INTO_MXFP4"


def mono_refusals(arm: Arm) -> Iterator[Refusal]:
    """Yield each precondition that an arm with mono: on does not meet."""
    if arm.axes.mono == "on":
        yield from _ranks(arm)
        yield from _caches(arm)
        yield from _weights(arm)
        yield from _steps(arm)


def _refused(code: str, said: str, expected: str) -> Refusal:
    return Refusal(code, f"mono: on with {said}: expected {expected}", "mono")


def _ranks(arm: Arm) -> Iterator[Refusal]:
    axes = arm.axes
    if axes.tp != TP:
        yield _refused("mono-tp", f"tp {axes.tp}", f"tp {TP}")
    if axes.pp != 1:
        yield _refused("mono-pp", f"pp {axes.pp}", "pp 1")
    if axes.ep != 1:
        yield _refused("mono-ep", f"ep {axes.ep}", "ep 1: its experts are split by tp")
    if axes.dp_attention:
        yield _refused("mono-dp-attention", "dp-attention", "attention split by tp")


def _caches(arm: Arm) -> Iterator[Refusal]:
    axes, expected = arm.axes, " or ".join(CACHES)
    if axes.kv_cache_dtype not in CACHES:
        yield _refused("mono-kv-cache", f"kv-cache-dtype {axes.kv_cache_dtype}", expected)
    index = axes.kv_cache_dtype if axes.index_cache_dtype == "auto" else axes.index_cache_dtype
    if index not in CACHES:
        yield _refused("mono-index-cache", f"index-cache-dtype {index}", expected)
    if axes.block_size != BLOCK:
        yield _refused("mono-block-size", f"block-size {axes.block_size}", str(BLOCK))
    if (axes.max_model_len or 0) > CONTEXT:
        yield _refused("mono-context", f"max-model-len {axes.max_model_len}", f"{CONTEXT} at most")


def _weights(arm: Arm) -> Iterator[Refusal]:
    quantised = _json(arm.options.get("online-quant-config")).get("global_quant_config")
    if quantised != QUANTISED:
        said = f"online-quant-config {quantised}"
        yield _refused("mono-projections", said, f"global_quant_config {QUANTISED} (PTPC FP8)")
    fused = arm.options.get(SHARED.lower().replace("_", "-")) or arm.env.get(SHARED) == "1"
    if not fused:
        expected = f"{SHARED}=1: the MXFP8 shared expert is one of the MXFP4 experts"
        yield _refused("mono-shared-expert", "a shared expert of its own", expected)


def _steps(arm: Arm) -> Iterator[Refusal]:
    drafts = _json(arm.options.get("dspark-config"))
    if drafts.get("confidence_schedule") or drafts.get("ragged"):
        yield _refused("mono-verify", "scheduled or ragged drafts", "a fixed number of drafts")
    if arm.axes.k + 1 > MONO_ROWS:
        yield _refused("mono-rows-per-request", f"{arm.axes.k + 1} rows", f"{MONO_ROWS} at most")
    if arm.options.get("enable-tbo"):
        yield Refusal("option-conflict", "mono: on with enable-tbo: expected neither", "mono")
    graphs = str(arm.options.get("cudagraph-mode") or "")
    if "PIECEWISE" in graphs:
        sentence = f"mono: on with cudagraph-mode {graphs}: expected FULL"
        yield Refusal("option-conflict", sentence, "mono")


def _json(text: Any) -> dict[str, Any]:
    """Return the object of an option of JSON; empty when it is not one."""
    try:
        content = json.loads(str(text or "{}"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
