"""Which layers compute: the compiled ones or plain torch, and whether mono is asked of them."""

from __future__ import annotations

from dataclasses import replace

from infx.engine.config import EngineConfig
from infx.engine.mono.dispatch import Deployment, Refusal, refuse_compiler, refuse_config

__all__ = ["deployment", "refuse_compiled", "refuse_mono"]


def deployment(config: EngineConfig) -> Deployment:
    """Return the facts by which mono is judged."""
    shape, kinds = config.shape, config.cache_kinds
    return Deployment(
        model=shape.name,
        layers=shape.num_layers,
        full_layers=shape.full_layers,
        dense_layers=shape.dense_layers,
        tp=config.tp,
        projections=config.projection_dtype,
        experts=config.expert_dtype,
        router=shape.router_dtype,
        kv_cache=kinds.kv,
        index_cache=kinds.index,
        block=config.block_size,
        selection_block=shape.block_size,
        cache_pages=config.pages,
        context=config.context,
        reach=shape.farthest,
        expert_size=shape.expert_size,
        shared_size=shape.shared_size,
        verify=config.dspark_verify,
        rows_per_request=config.rows_per_request,
    )


def refuse_compiled(config: EngineConfig) -> Refusal | None:
    """Return why plain torch computes the layers, or None: the compiled ones do.

    Unfused layers are mono's own stages, so they serve what mono would at one row a request.
    """
    return refuse_config(replace(deployment(config), rows_per_request=1)) or refuse_compiler(
        "numba"
    )


def refuse_mono(config: EngineConfig) -> Refusal | None:
    """Return why mono serves no step of ``config``, or None: each step is judged by itself."""
    return refuse_config(deployment(config)) or refuse_compiler("numba")
