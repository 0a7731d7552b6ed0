"""What the commands of `infx engine` run on a GPU: random layers of one TP4 rank of M3."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infx.domain.errors import UsageError

if TYPE_CHECKING:
    from infx.engine.config import EngineConfig

__all__ = ["LAYERS", "MODEL", "configured_on_cuda", "cuda_facts", "needed_bytes"]

MODEL, WEIGHTS, CACHE = "m3_tp4_rank", "random:0", "fp8"
# Enough that a layer reads what another one wrote.
LAYERS = 2
# Of a layer: packed weights and caches with their copies; plain torch has float32 weights.
LAYER_BYTES, TORCH_LAYER_BYTES = 1_400_000_000, 7_400_000_000
# Weights of experts that are spoiled meanwhile, histories, scratch, the context itself.
BESIDE_BYTES = 3_000_000_000
# What the kernels' weights are rounded to.
FORMATS: dict[str, Any] = {
    "projection_dtype": "fp8",
    "expert_dtype": "mxfp4",
    "router_dtype": "bf16",
}


def needed_bytes(layers: int, *, plain_torch: bool) -> int:
    """Return the bytes on a GPU that a probe or a check of ``layers`` random layers takes."""
    a_layer = LAYER_BYTES + (TORCH_LAYER_BYTES if plain_torch else 0)
    # One layer's matrices are unpacked at a time, and stacked.
    return layers * a_layer + BESIDE_BYTES + (TORCH_LAYER_BYTES if plain_torch else 0)


def configured_on_cuda(
    model: str | None,
    weights: str | None,
    kv: str,
    index: str,
    needed_bytes: int = 0,
    **more: Any,
) -> EngineConfig:
    """Return the configuration of the kernels' model, random weights and fp8 caches by default.

    Raises RefusalError or UsageError for what no kernel does, and for a machine whose GPU cannot:
    it must have ``needed_bytes`` free.
    """
    from infx.engine.config import EngineConfig
    from infx.engine.refusal import RefusalError
    from infx.engine.weights import seed_of, shape_of_source

    model, weights = model or MODEL, weights or WEIGHTS
    if model != MODEL:
        raise RefusalError("mono-shape", f"--model {model}: the CUDA kernels are built for {MODEL}")
    if seed_of(weights) is None:
        sentence = f"--weights {weights[:60]}: expected random:SEED, drawn on the GPU"
        raise UsageError("bad-option", sentence)
    reach = _reach()
    config = EngineConfig(
        model=model,
        weights=weights,
        kv_cache_dtype=CACHE if kv == "auto" else kv,
        index_cache_dtype=CACHE if index == "auto" else index,
        block_size=shape_of_source(model, weights).block_size,
        max_model_len=min(more.pop("max_model_len", reach), reach),
        **FORMATS,
        **more,
    )
    _refuse(config, reach, needed_bytes)
    return config


def _reach() -> int:
    from infx.engine.mono.shape import SHAPES

    return SHAPES[MODEL].reach


def _refuse(config: EngineConfig, reach: int, needed_bytes: int) -> None:
    from infx.engine.deployment import deployment
    from infx.engine.mono.cuda.device import cuda_refusal
    from infx.engine.mono.dispatch import refuse_config
    from infx.engine.refusal import RefusalError

    facts = replace(deployment(config), device="cuda", reach=reach)
    if refusal := refuse_config(facts) or cuda_refusal(needed_bytes):
        raise RefusalError(refusal.code, refusal.sentence)


def cuda_facts(config: EngineConfig, layers: int) -> dict[str, Any]:
    """Return what a result says of its GPU and its model."""
    from infx.engine.mono.cuda.device import device_facts

    kinds = config.cache_kinds
    return {
        "device": "cuda",
        "gpu": device_facts().name,
        "model": config.model,
        "weights": config.weights,
        "layers": layers,
        "all_reduce": "a self-sum of 4 equal parts",
        "kv_cache": kinds.kv,
        "index_cache": kinds.index,
        **FORMATS,
    }
