"""What the server says of itself: /server_info, /v1/models, /tokenizer_info."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from infx import __version__
from infx.engine.config import EngineConfig
from infx.engine.mono.coverage import Snapshot
from infx.engine.mono.refusal import Refusal
from infx.engine.shapes import NULL
from infx.engine.tokenizer import hub_config
from infx.engine.weights import identity

__all__ = ["Info"]


class Info:
    """Bodies of the pages that tell the resolved configuration and the weights' identity."""

    def __init__(self, config: EngineConfig) -> None:
        self._config, self._started_s = config, int(time.time())

    def server(
        self,
        pids: Sequence[int] = (),
        layers: str = "",
        refusal: Refusal | None = None,
        seen: Snapshot | None = None,
    ) -> dict[str, Any]:
        """Return who answers, and the configuration in the names of `infx.domain.axes`.

        ``pids`` are the processes of the tensor-parallel ranks, rank by rank, once there are any;
        ``layers`` and ``refusal`` what the engine says of them, ``seen`` what mono served. Refused
        mono is off.
        """
        computing: dict[str, Any] = {"layers": layers or self._config.layers}
        if refusal:
            told = {"code": refusal.code, "sentence": refusal.sentence}
            computing |= {"mono": "off", "mono_refusal": told}
        return {
            "engine": "infx",
            "version": __version__,
            "pid": os.getpid(),
            "rank_pids": list(pids),
            "nonce": self._config.nonce,
            "served_model_name": self._config.served_model_name,
            "mono": seen.told() if seen and self._config.mono == "on" else None,
            "config": _resolved(self._config) | {"weights_identity": self._weights} | computing,
        }

    @cached_property
    def _weights(self) -> str:
        """The hash of the checkpoint's files, "" where weights come from a seed."""
        config = self._config
        return "" if config.model == NULL else identity(config.weights, config.model)

    def models(self) -> dict[str, Any]:
        """Return the list of the one model, and whether an acceptance law decides its text."""
        model = {
            "id": self._config.served_model_name,
            "object": "model",
            "created": self._started_s,
            "owned_by": "infx",
            "max_model_len": self._config.context,
            "synthetic_acceptance": self._config.acceptance.mode == "synthetic",
            "acceptance": _acceptance(self._config),
        }
        return {"object": "list", "data": [model]}

    def tokenizer(self) -> dict[str, Any]:
        """Return the special tokens and the chat template, for clients that render chats."""
        return hub_config() | {"model_max_length": self._config.context}


def _resolved(config: EngineConfig) -> dict[str, Any]:
    return {
        "shape": config.model,
        "weights": config.weights,
        "dtype": config.dtype,
        "router_dtype": config.router_dtype,
        "expert_dtype": config.expert_dtype,
        "projection_dtype": config.projection_dtype,
        "tp": config.tp,
        "simulated_ranks": 1 if config.model == NULL else config.shape.simulated_ranks,
        "pp": 1,
        "ep": 1,
        "dp_attention": False,
        "mono": config.mono,
        "kv_cache_dtype": config.cache_kinds.kv,
        "index_cache_dtype": config.cache_kinds.index,
        "k": config.k,
        "method": config.method,
        "block_size": config.block_size,
        "num_blocks": config.pages,
        "max_num_seqs": config.max_num_seqs,
        "max_num_batched_tokens": config.max_num_batched_tokens,
        "max_model_len": config.context,
        "capture_sizes": list(config.capture_sizes),
        "capture_sizes_unit": "rows",
        "prefix_caching": config.prefix_caching,
        "chunked_prefill": True,
        "kv_offload": "none",
        "kv_offload_backend": "auto",
        "kv_offload_gb": None,
        "queue_limit": config.queue_limit,
        "threads": config.threads,
        "acceptance": _acceptance(config),
    }


def _acceptance(config: EngineConfig) -> dict[str, Any]:
    acceptance = config.acceptance
    told: dict[str, Any] = {"mode": acceptance.mode, "length": acceptance.length, "k": acceptance.k}
    if acceptance.mode == "real":
        return told
    told |= {"law": acceptance.law, "seed": config.acceptance_seed}
    return told | ({"curve": list(acceptance.curve)} if acceptance.curve else {})
