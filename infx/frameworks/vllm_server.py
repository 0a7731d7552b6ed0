"""What a running vLLM tells of itself: `/server_info` of its development mode, in our names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from typing import Any

from infx.domain.acceptance import Acceptance, Law

__all__ = ["INFO", "running_acceptance", "running_configuration"]

INFO = "/server_info?config_format=json"

# Ours -> (section, field) of its configuration, where the words are the same.
FIELDS: Mapping[str, tuple[str, str]] = {
    "pp": ("parallel_config", "pipeline_parallel_size"),
    "max_num_seqs": ("scheduler_config", "max_num_seqs"),
    "max_num_batched_tokens": ("scheduler_config", "max_num_batched_tokens"),
    "max_model_len": ("model_config", "max_model_len"),
    "block_size": ("cache_config", "block_size"),
    "prefix_caching": ("cache_config", "enable_prefix_caching"),
    "chunked_prefill": ("scheduler_config", "enable_chunked_prefill"),
    "capture_sizes": ("compilation_config", "cudagraph_capture_sizes"),
    "enforce-eager": ("model_config", "enforce_eager"),
    "seed": ("model_config", "seed"),
    "gpu-memory-utilization": ("cache_config", "gpu_memory_utilization"),
    "weights_file": ("model_config", "model"),
    "weights_type": ("model_config", "dtype"),
    "weights_quantization": ("model_config", "quantization"),
    "kv_cache_tokens": ("cache_config", "kv_cache_size_tokens"),
}

# vLLM's word -> ours.
CACHE_TYPES = {"bfloat16": "bf16", "float32": "fp32", "fp8_e4m3": "fp8"}

ROUNDING = 1e-6


def running_configuration(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the axes and the options that the server tells; None for what it says nothing of."""
    told = answers.get(INFO, {}).get("vllm_config")
    if not isinstance(told, Mapping):
        return {}
    parallel = _section(told, "parallel_config")
    replicas = int(parallel.get("data_parallel_size") or 1)
    ranks = int(parallel.get("tensor_parallel_size") or 1) * replicas
    plain = {name: _section(told, section).get(of) for name, (section, of) in FIELDS.items()}
    return {
        **plain,
        "tp": ranks,
        "ep": ranks if parallel.get("enable_expert_parallel") else 1,
        "dp_attention": replicas > 1,
        "k": _drafting(told).get("num_speculative_tokens") or 0,
        "method": _drafting(told).get("method"),
        "kv_cache_dtype": _cache_type(_section(told, "cache_config").get("cache_dtype")),
        "index_cache_dtype": _section(told, "attention_config").get("indexer_kv_dtype"),
    }


def running_acceptance(answers: Mapping[str, Any]) -> Acceptance | None:
    """Return how drafts are accepted; None when the page, or its section, is not there or of
    another form: that is no proof of real acceptance.

    The server tells the rates of the law, not its name: those of a length by min-variance are
    known by their form.
    """
    told = answers.get(INFO, {}).get("vllm_config")
    if not isinstance(told, Mapping) or "speculative_config" not in told:
        return None
    if not isinstance(told["speculative_config"], Mapping | None):
        return None
    drafting = _drafting(told)
    k = int(drafting.get("num_speculative_tokens") or 0)
    if drafting.get("rejection_sample_method") != "synthetic":
        return Acceptance(k=k)
    rates = tuple(float(rate) for rate in drafting.get("synthetic_acceptance_rates") or ())
    law: Law = "min-variance" if _is_min_variance(rates) else "from-curve"
    curve = rates if law == "from-curve" else ()
    return Acceptance("synthetic", 1 + sum(rates), law, k=k, curve=curve)


def _section(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = told.get(name)
    return section if isinstance(section, Mapping) else {}


def _drafting(told: Mapping[str, Any]) -> Mapping[str, Any]:
    return _section(told, "speculative_config")


def _cache_type(told: Any) -> str:
    return CACHE_TYPES.get(str(told), str(told or ""))


def _is_min_variance(rates: Sequence[float]) -> bool:
    """Return True for ones, one share, and nothing after it."""
    whole = floor(sum(rates) + ROUNDING)
    ones, rest = rates[:whole], rates[whole + 1 :]
    return all(abs(rate - 1) < ROUNDING for rate in ones) and all(r < ROUNDING for r in rest)
