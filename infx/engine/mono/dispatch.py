"""Whether mono serves a deployment, a layer, a step: `Refusal` or None, the same on every rank.

The configuration is judged before anything is loaded, from plain values alone, so that a plan can
say without an accelerator what a server will answer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from infx.engine.mono.refusal import Level, Refusal
from infx.engine.mono.shape import CACHE_KINDS, MOST_ROWS
from infx.engine.mono.step import Bounds, StepRows, refuse_step

__all__ = [
    "DEVICES",
    "Bounds",
    "Deployment",
    "Level",
    "Refusal",
    "Served",
    "StepRows",
    "refuse_compiler",
    "refuse_config",
    "refuse_layer",
    "refuse_step",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What mono serves on a device: values of the `Deployment`'s fields of the same names."""

    tp: tuple[int, ...]
    projections: tuple[str, ...]
    experts: tuple[str, ...] = ("fp32", "mxfp4")
    router: tuple[str, ...] = ("fp32", "bf16")
    caches: tuple[str, ...] = CACHE_KINDS
    layers: tuple[str, ...] = ("dense", "sparse")


# cpu: a compiled call cannot exchange with another process, and its plan applies a norm's factor
# after the product, where fp8 projections would quantise activations before it.
# cuda: the slice that one rank of four holds, its sum over ranks being that of equal parts.
DEVICES = {
    "cpu": Served(tp=(1,), projections=("fp32",)),
    "cuda": Served(
        tp=(1,),
        projections=("fp8",),
        experts=("mxfp4",),
        router=("bf16",),
        caches=("bf16", "fp8", "mxfp4"),
        layers=("sparse",),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """All facts of the configuration, as plain values.

    ``layers`` are the model's, the first ``full_layers`` with full attention, the first
    ``dense_layers`` with a dense MLP. ``context`` is the longest that is served (tokens), ``reach``
    the longest of the build. ``block`` is tokens a page of the cache, ``selection_block`` the unit
    of block selection, ``cache_pages`` pages of the cache. ``rows_per_request`` is K + 1.
    Experts are ``expert_size`` wide, the shared one ``shared_size``. Types are those that numbers
    are rounded to: mxfp4 experts held as float32 are ``mxfp4``.
    """

    layers: int
    context: int
    reach: int
    cache_pages: int
    device: str = "cpu"
    model: str = ""
    full_layers: int = 0
    dense_layers: int = 0
    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp_attention: bool = False
    projections: str = "fp32"
    experts: str = "fp32"
    router: str = "fp32"
    kv_cache: str = "fp32"
    index_cache: str = "fp32"
    block: int = 16
    selection_block: int = 16
    expert_size: int = 0
    shared_size: int = 0
    verify: str = "fixed"
    rows_per_request: int = 1
    torch_compile: bool = False
    weight_swap: bool = False
    lora: bool = False
    sleep: bool = False

    @property
    def bounds(self) -> Bounds:
        """What the numbers of a step stay below."""
        return Bounds(self.reach, self.block, self.cache_pages * self.block)


def refuse_config(deployment: Deployment) -> Refusal | None:
    """Return why no step of ``deployment`` can be mono's, or None; the first of a fixed order."""
    served = DEVICES.get(deployment.device)
    if served is None:
        return Refusal("mono-device", _among("device", deployment.device, tuple(DEVICES)))
    found = (rule(deployment, served) for rule in _RULES)
    return next((refusal for refusal in found if refusal), None)


def refuse_layer(kind: str, device: str = "cpu") -> Refusal | None:
    """Return why a layer of ``kind`` stays on the host's own layers in a mono step, or None."""
    served = DEVICES[device].layers
    if kind == "sparse_dense":
        return Refusal(
            "mono-sparse-dense",
            "a layer of chosen blocks with a dense MLP (sparse_dense): mono begins at the first"
            " layer with experts",
        )
    if kind not in served:
        return Refusal("mono-layer-kind", _among(f"layer kind on {device}", kind, served))
    return None


def refuse_compiler(*modules: str) -> Refusal | None:
    """Return a refusal when one of the modules that a back end compiles with is not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    return Refusal("mono-no-compiler", f"{', '.join(missing)}: not installed; install infx[engine]")


def _among(what: str, value: object, expected: tuple[object, ...]) -> str:
    return f"{what} {value}: expected {' or '.join(map(str, expected))}"


_Rule = Callable[[Deployment, Served], Refusal | None]


def _refuse_ranks(d: Deployment, served: Served) -> Refusal | None:
    if d.tp not in served.tp:
        return Refusal("mono-tp", _among(f"tp on {d.device}", d.tp, served.tp))
    if d.pp != 1:
        return Refusal("mono-pp", _among("pp", d.pp, (1,)))
    if d.ep != 1:
        return Refusal("mono-ep", _among("ep", d.ep, (1,)))
    if d.dp_attention:
        return Refusal(
            "mono-dp-attention", "dp attention on: expected off, as all ranks run the same rows"
        )
    return None


def _refuse_formats(d: Deployment, served: Served) -> Refusal | None:
    if d.projections not in served.projections:
        what = f"projections on {d.device}"
        return Refusal("mono-projections", _among(what, d.projections, served.projections))
    if d.experts not in served.experts:
        return Refusal("mono-experts", _among("experts", d.experts, served.experts))
    if d.router not in served.router:
        return Refusal("mono-router", _among("router", d.router, served.router))
    if d.kv_cache not in served.caches:
        return Refusal("mono-kv-cache", _among("kv cache", d.kv_cache, served.caches))
    if d.index_cache not in served.caches:
        return Refusal("mono-index-cache", _among("index cache", d.index_cache, served.caches))
    return None


def _refuse_sizes(d: Deployment, served: Served) -> Refusal | None:
    if d.block != d.selection_block:
        return Refusal(
            "mono-block-size",
            f"block size {d.block}: expected {d.selection_block}, the unit of block selection",
        )
    if d.context > d.reach:
        return Refusal(
            "mono-context", f"context {d.context}: expected at most {d.reach}, the build's reach"
        )
    if d.rows_per_request > MOST_ROWS:
        return Refusal(
            "mono-rows-per-request",
            f"{d.rows_per_request} rows a request (K + 1): expected at most {MOST_ROWS}",
        )
    return None


def _refuse_model(d: Deployment, served: Served) -> Refusal | None:
    if d.full_layers > d.dense_layers:
        return Refusal(
            "mono-full-experts",
            f"{d.full_layers} layers of {d.model or 'the model'} have full attention and"
            f" {d.dense_layers} a dense MLP: expected no experts under full attention",
        )
    if d.shared_size != d.expert_size:
        return Refusal(
            "mono-shared-expert",
            f"a shared expert of {d.shared_size}: expected {d.expert_size}, as it is read as one"
            " more expert",
        )
    return None


def _refuse_uses(d: Deployment, served: Served) -> Refusal | None:
    if d.verify != "fixed":
        return Refusal(
            "mono-verify", f"verify {d.verify}: expected fixed, K + 1 rows of each request"
        )
    if d.torch_compile:
        return Refusal(
            "mono-torch-compile", "torch.compile of the library: expected plain calls of it"
        )
    if d.weight_swap:
        return Refusal(
            "mono-weight-swap", "weight swap on: expected off, as addresses of weights are kept"
        )
    if d.lora:
        return Refusal("mono-lora", "LoRA on: expected off, as the weights of all rows are one")
    if d.sleep:
        return Refusal(
            "mono-sleep", "sleep on: expected off, as addresses of weights and caches are kept"
        )
    return None


_RULES: tuple[_Rule, ...] = (
    _refuse_ranks,
    _refuse_formats,
    _refuse_sizes,
    _refuse_model,
    _refuse_uses,
)
