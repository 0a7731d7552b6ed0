"""TensorRT-LLM: ``trtllm-serve`` of a container image, its settings in a file beside it.

The file is YAML (JSON is: every JSON text is a YAML one), named by ``--config``; what it holds wins
over the command line. Options with dots are entries of that file. A forced acceptance counts the
drafts alone: the length less the target's own token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import PROCESS, Launch, Option, Paths, Refusal
from infx.frameworks.counting import acceptance_length, share, whole
from infx.frameworks.hub import checkpoint, refuse_weights, revision_words, tokenizer
from infx.frameworks.options import conflicts, engine_options, words
from infx.frameworks.prometheus import parse
from infx.frameworks.refusing import (
    captured_requests,
    offload_bytes_a_rank,
    refuse_acceptance,
    refuse_captures,
    refuse_dtypes,
    refuse_env,
    refuse_method,
    refuse_mono,
    refuse_offload,
)

__all__ = ["CONFIG", "TrtLlm"]

CONFIG = "trtllm.yaml"
FORCED = "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"

NUMBERS = {
    "max_num_seqs": "--max_batch_size",
    "max_num_batched_tokens": "--max_num_tokens",
    "max_model_len": "--max_seq_len",
}

KV_TYPES = INDEX_TYPES = ("fp8",)

KINDS = {
    "eagle3": "Eagle3",
    "mtp": "MTP",
    "dspark": "DSpark",
    "draft-model": "Draft_Target",
    "ngram": "NGram",
}
DRAFTED: Mapping[str, bool | None] = {
    **{"eagle3": True, "mtp": False, "dspark": True, "draft-model": True, "ngram": False},
}
TWO_MODELS = ("draft-model", "ngram")
"""Methods whose verification reads the forced count as a whole number (no fraction of a token)."""

# Option -> the axis that says the same ("": the job).
OWNED = {
    **{flag.removeprefix("--").replace("_", "-"): axis for axis, flag in NUMBERS.items()},
    "tensor-parallel-size": "tp",
    "pipeline-parallel-size": "pp",
    "moe-expert-parallel-size": "ep",
    "enable-attention-dp": "dp_attention",
    "enable-chunked-prefill": "chunked_prefill",
    **dict.fromkeys(("kv-cache-dtype", "kv-cache-config.dtype"), "kv_cache_dtype"),
    "kv-cache-config.tokens-per-block": "block_size",
    "kv-cache-config.enable-block-reuse": "prefix_caching",
    "kv-cache-config.host-cache-size": "kv_offload_gb",
    "cuda-graph-config.batch-sizes": "capture_sizes",
    "sparse-attention-config.indexer-kv-dtype": "index_cache_dtype",
    **dict.fromkeys(("speculative-config.decoding-type", "speculative-config.max-draft-len"), "k"),
    "speculative-config.speculative-model": "k",
    **dict.fromkeys(("host", "port", "revision", "served-model-name", "config", "tokenizer"), ""),
    **dict.fromkeys(("return-perf-metrics", "enable-iter-perf-stats"), ""),
}

CAPACITY = (
    *("free-gpu-memory-fraction", "kv-cache-config.free-gpu-memory-fraction", "log-level"),
    *("kv-cache-config.max-tokens", "kv-cache-config.event-buffer-max-size", "print-iter-log"),
    *("num-postprocess-workers", "stream-interval", "scheduler-config.capacity-scheduler-policy"),
)

DRAFTS = "trtllm_spec_decode_drafted_tokens_total"
ACCEPTED = "trtllm_spec_decode_accepted_tokens_total"


class TrtLlm:
    """TensorRT-LLM with its PyTorch back end."""

    name = "trtllm"
    methods: tuple[str, ...] = ("none", *KINDS)
    laws: tuple[Law, ...] = ("min-variance",)
    paths = Paths(metrics="/prometheus/metrics")
    pages: tuple[str, ...] = ("/version", PROCESS)
    options: Mapping[str, Option] = engine_options("trtllm", capacity=CAPACITY)
    gauges: Mapping[str, str] = {
        "peak_running": "trtllm_num_requests_running",
        "peak_waiting": "trtllm_num_requests_waiting",
        "kv_cache_usage_peak": "trtllm_kv_cache_utilization",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return what TensorRT-LLM lacks, and lengths that it cannot force."""
        found = [*conflicts(arm, OWNED), *refuse_env(arm, {FORCED: "the golden length"})]
        found += [*refuse_weights(self.name, arm), *refuse_mono(self.name, arm)]
        known = {"kv_cache_dtype": KV_TYPES, "index_cache_dtype": INDEX_TYPES}
        found += refuse_dtypes(self.name, arm, known)
        found += refuse_captures(self.name, arm)
        found += refuse_offload(self.name, arm, ("native",))
        found += refuse_method(self.name, arm, self.methods, DRAFTED)
        return [*found, *refuse_acceptance(self.name, arm, self.laws), *_unforced(arm)]

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the server's command and its file; the forced acceptance is a variable. It repeats
        no nonce."""
        argv = ["trtllm-serve", checkpoint(arm.model.weights), *revision_words(arm)]
        argv += ["--served_model_name", arm.model.name, "--host", host, "--port", str(port)]
        argv += [*_axis_words(arm), "--config", str((folder / CONFIG).absolute())]
        flags = {name: v for name, v in arm.options.items() if not self.options[name].key}
        argv += words(self.options, flags)
        return Launch(
            argv=tuple(argv),
            env={**arm.env, **_forced_env(arm)},
            files={CONFIG: json.dumps(_content(arm, self.options), indent=1) + "\n"},
        )

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the checkpoint's own tokenizer, or what the recipe names."""
        return tokenizer(arm)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the version: no page of the server tells its configuration."""
        return {"version": answers.get("/version", {}).get("version")}

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance that the variables of the running process say; None when they
        cannot be read: no page tells. A count of 0 forces nothing."""
        started = answers.get(PROCESS)
        if started is None:
            return None
        forced = _number(started["env"].get(FORCED, "0"))
        return Acceptance("synthetic", 1 + forced) if forced > 0 else Acceptance()

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return None: the server repeats nothing."""
        return None

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the realised acceptance length and cache hits: every verify step drafts a first
        token. Paused requests are a level here, so preemptions are not told."""
        start, end = parse(before), parse(after)
        drafted = end.by_label(DRAFTS, "token_position").get("0")
        earlier = start.by_label(DRAFTS, "token_position").get("0", 0.0)
        steps = None if drafted is None else drafted - earlier
        return EngineCounters(
            acceptance_length=acceptance_length(end.since(start, ACCEPTED), steps),
            verify_steps=whole(steps),
            prefix_cache_hit_share=share(
                end.since(start, "trtllm_prompt_cached_tokens_total"),
                end.since(start, "trtllm_prompt_tokens_total"),
            ),
        )


def _axis_words(arm: Arm) -> Iterator[str]:
    axes = arm.axes
    yield from ("--tensor_parallel_size", str(axes.tp))
    if axes.pp > 1:
        yield from ("--pipeline_parallel_size", str(axes.pp))
    if axes.ep > 1:
        yield from ("--moe_expert_parallel_size", str(axes.ep))
    for name, flag in NUMBERS.items():
        if (number := getattr(axes, name)) is not None:
            yield from (flag, str(number))


def _content(arm: Arm, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the file: the recipe's entries, then those of the axes. Counters are always on."""
    content: dict[str, Any] = {"return_perf_metrics": True, "enable_iter_perf_stats": True}
    asked = {options[name].key: value for name, value in arm.options.items() if options[name].key}
    for path, value in {**asked, **dict(_entries(arm))}.items():
        if value is not None:
            *sections, last = path.split(".")
            place = content
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = list(value) if isinstance(value, tuple) else value
    return content


def _entries(arm: Arm) -> Iterator[tuple[str, Any]]:
    axes = arm.axes
    yield "enable_attention_dp", axes.dp_attention or None
    yield "enable_chunked_prefill", axes.chunked_prefill
    yield "kv_cache_config.dtype", None if axes.kv_cache_dtype == "auto" else axes.kv_cache_dtype
    yield "kv_cache_config.tokens_per_block", axes.block_size
    yield "kv_cache_config.enable_block_reuse", axes.prefix_caching
    yield "kv_cache_config.host_cache_size", _host_cache(arm)
    if axes.index_cache_dtype != "auto":
        yield "sparse_attention_config.indexer_kv_dtype", axes.index_cache_dtype
    if sizes := captured_requests(arm):
        yield "cuda_graph_config.batch_sizes", sizes
        yield "cuda_graph_config.enable_padding", True
    yield from _drafting(arm)


def _host_cache(arm: Arm) -> int | None:
    return offload_bytes_a_rank(arm) if arm.axes.kv_offload == "dram" else None


def _drafting(arm: Arm) -> Iterator[tuple[str, Any]]:
    if arm.method == "none" or not arm.axes.k:
        return
    yield "speculative_config.decoding_type", KINDS[arm.method]
    length = "num_nextn_predict_layers" if arm.method == "mtp" else "max_draft_len"
    yield f"speculative_config.{length}", arm.axes.k
    yield "speculative_config.speculative_model", checkpoint(arm.draft) or None


def _forced_env(arm: Arm) -> dict[str, str]:
    if arm.acceptance.mode == "real" or arm.acceptance.length is None:
        return {}
    return {FORCED: f"{arm.acceptance.length - 1:.10g}"}


def _unforced(arm: Arm) -> Iterator[Refusal]:
    """0 accepted drafts is how the engine spells real acceptance; two models count whole drafts."""
    told = arm.acceptance
    if told.mode == "real" or told.length is None:
        return
    if told.length == 1:
        yield Refusal("unsupported-law", "trtllm cannot force a length of 1: 0 drafts is real", "k")
    if arm.method in TWO_MODELS and told.length % 1:
        sentence = f"trtllm forces whole drafts with {arm.method}: {told.length} has a fraction"
        yield Refusal("unsupported-law", sentence, "k")


def _number(text: str) -> float:
    """Return the forced count as the engine reads it: what is no number forces nothing."""
    try:
        return float(text)
    except ValueError:
        return 0.0
